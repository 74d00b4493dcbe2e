"""Streams groups beside Kafka: its own classes are asked what ours are, and applications run on both."""
