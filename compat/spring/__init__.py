"""Spring Kafka, whose listeners, templates and transactions are played on both brokers."""
