"""The judge without Java: Ottla against what Apache Kafka 4.4.0 was recorded to answer."""
