"""confluent-kafka, which is librdkafka: ``python -m compat.python_confluent_kafka`` plays the scenarios."""
