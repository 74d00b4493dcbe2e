"""Which clients work: scenarios by client, against Ottla and against Apache Kafka, and the tables of that."""
