"""What storage costs: many partitions, recovery, compaction, and appends beside those of an earlier Ottla."""
