"""Clusters of Ottla and Apache Kafka together."""
