"""What other people wrote, run against us, from outside: Apache Kafka itself, its tools, and clients."""
