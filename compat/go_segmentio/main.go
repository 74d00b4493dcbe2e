// Carries out calls with segmentio's kafka-go.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"

	driver "ottla/compat/go_driver"
)

func main() {
	driver.Serve("kafka-go", "github.com/segmentio/kafka-go", open, refusal)
}

func refusal(err error) (int16, string) {
	var refused kafka.Error
	if errors.As(err, &refused) {
		return int16(refused), err.Error()
	}
	return 0, ""
}

func open(operation string, with driver.Arguments) (driver.Subject, error) {
	switch operation {
	case "producer":
		return newProducer(with)
	case "transactional_producer":
		return nil, driver.NotOffered("its writer has no transactions")
	case "consumer":
		return newConsumer(with)
	case "share_consumer":
		return nil, driver.NotOffered("it has no share consumer")
	case "admin":
		return newAdmin(with)
	}
	return nil, driver.Unknown(operation)
}

func address(with driver.Arguments) string { return driver.Get[string](with, "address") }

// lookAgain is how long the client waits for its first answer about the cluster, too: without one it knows no
// controller, and fails.
const lookAgain = 2 * time.Second

// newTransport makes connections that look soon for topics that are made meanwhile.
func newTransport() *kafka.Transport {
	return &kafka.Transport{ClientID: "kafka-go", MetadataTTL: lookAgain}
}

func newClient(with driver.Arguments, transport *kafka.Transport) *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(address(with)), Timeout: driver.Patience, Transport: transport}
}

// patiently gives the context of a call.
func patiently() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), driver.Patience)
}
