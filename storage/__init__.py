"""Partition logs in Kafka's on-disk format.  Synchronous; the file system and the clock are handed in."""
