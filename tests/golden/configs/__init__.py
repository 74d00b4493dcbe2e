"""What Apache Kafka 4.4.0 says about settings, recorded by ``record.py``."""
