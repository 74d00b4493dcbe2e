"""What every coordinator is made of: machines that decide, and shards that keep them in a partition's log."""
