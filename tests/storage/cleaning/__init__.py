"""Compaction and retention beside Kafka's: the same histories of one log, and what both leave of it."""
