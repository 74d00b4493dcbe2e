"""kafka-python 1.4.7 of 2019, which speaks the protocol of Kafka 1.0, in an environment of its own."""
