"""Apache Kafka's own Java client: ``python -m compat.java_client 4.4.0`` plays the scenarios."""
