"""Clusters for tests, and what those with Apache Kafka need."""

from compat.conftest import kafka_jars

__all__ = ["kafka_jars"]
