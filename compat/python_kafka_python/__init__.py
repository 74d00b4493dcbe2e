"""kafka-python, in pure Python: ``python -m compat.python_kafka_python`` plays the scenarios."""
