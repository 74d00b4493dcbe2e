"""Streams groups (KIP-1071): what an application reads, which tasks that makes, and who works on them."""
