"""What replication costs, and how long a failover takes, beside Apache Kafka."""
