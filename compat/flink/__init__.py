"""Apache Flink and its connector, whose jobs are played on both brokers."""
