"""Recorded answers of other brokers and clients."""
