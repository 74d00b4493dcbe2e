// Carries out calls with sarama.
package main

import (
	"errors"
	"time"

	"github.com/IBM/sarama"

	driver "ottla/compat/go_driver"
)

func main() {
	driver.Serve("sarama", "github.com/IBM/sarama", open, refusal)
}

func refusal(err error) (int16, string) {
	var refused sarama.KError
	if errors.As(err, &refused) {
		return int16(refused), refused.Error()
	}
	return 0, ""
}

func open(operation string, with driver.Arguments) (driver.Subject, error) {
	opened, err := openAny(operation, with)
	var refused sarama.ConfigurationError
	if errors.As(err, &refused) {
		err = driver.NotOffered(string(refused))
	}
	return opened, err
}

func openAny(operation string, with driver.Arguments) (driver.Subject, error) {
	switch operation {
	case "producer":
		return newProducer(with)
	case "transactional_producer":
		return newTransactionalProducer(with)
	case "consumer":
		return newConsumer(with)
	case "share_consumer":
		return nil, driver.NotOffered("it has no share consumer")
	case "admin":
		return newAdmin(with)
	case "versions":
		return versions{}, nil
	}
	return nil, driver.Unknown(operation)
}

// versions of Kafka that sarama can be told to expect.
type versions struct{}

func (versions) Call(operation string, _ driver.Arguments) (any, error) {
	told := []string{}
	for _, each := range sarama.SupportedVersions {
		told = append(told, each.String())
	}
	return told, nil
}

// settings that all objects have: the version that is given, or the newest one that sarama knows.
func settings(with driver.Arguments) *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	if given := driver.Get[string](with, "version"); given != "" {
		version, err := sarama.ParseKafkaVersion(given)
		if err != nil {
			panic(err)
		}
		config.Version = version
	}
	config.Metadata.Retry.Max = 100
	config.Metadata.Retry.Backoff = 100 * time.Millisecond
	config.Admin.Timeout = 30 * time.Second // 3 s are not much on a machine that does other things
	return config
}

func addresses(with driver.Arguments) []string {
	return []string{driver.Get[string](with, "address")}
}
