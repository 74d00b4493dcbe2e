"""confluent-kafka, which is librdkafka, through the scenarios: ``python -m compat.python_confluent_kafka``."""
