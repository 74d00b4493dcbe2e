"""What Apache Kafka makes of damaged log directories, and whether Ottla does the same."""
