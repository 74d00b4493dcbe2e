"""kafka-python, the client in pure Python, through the scenarios: ``python -m compat.python_kafka_python``."""
