"""Quix Streams, whose applications of Python keep state in changelogs, played on both brokers."""
