"""The driver of kafka-python; ``compat.scenarios.python.driver`` says how it is called."""

from compat.python_kafka_python.client import KafkaPython
from compat.scenarios.python.driver import main

if __name__ == "__main__":
    main(KafkaPython())
