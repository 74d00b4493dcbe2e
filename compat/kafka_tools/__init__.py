"""Kafka's own command line tools, pointed at us."""
