"""Apache Kafka 4.4.0, fetched from its jars, as the judge of what a broker should do."""
