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
	}
	return nil, driver.Unknown(operation)
}

// settings that all objects have: the newest version that sarama knows.
func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Metadata.Retry.Max = 100
	config.Metadata.Retry.Backoff = 100 * time.Millisecond
	return config
}

func addresses(with driver.Arguments) []string {
	return []string{driver.Get[string](with, "address")}
}
