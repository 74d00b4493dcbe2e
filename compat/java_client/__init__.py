"""Apache Kafka's own Java client: ``python -m compat.java_client`` plays the scenarios."""
