"""The driver of confluent-kafka; ``compat.scenarios.python.driver`` says how it is called."""

from compat.python_confluent_kafka.client import ConfluentKafka
from compat.scenarios.python.driver import main

if __name__ == "__main__":
    main(ConfluentKafka())
