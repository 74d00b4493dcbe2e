"""Kafka Connect: ``python -m compat.connect`` plays its scenarios."""
