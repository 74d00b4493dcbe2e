// Carries out calls with franz-go.
package main

import (
	driver "ottla/compat/go_driver"
)

func main() {
	driver.Serve("franz-go", "github.com/twmb/franz-go", open, refusal)
}

func open(operation string, with driver.Arguments) (driver.Subject, error) {
	switch operation {
	case "producer":
		return newProducer(with)
	case "transactional_producer":
		return newTransactionalProducer(with)
	case "pipeline":
		return newPipeline(with)
	case "consumer":
		return newConsumer(with)
	case "share_consumer":
		return &shareConsumer{with: with}, nil
	case "admin":
		return newAdmin(with)
	}
	return nil, driver.Unknown(operation)
}
