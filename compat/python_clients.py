"""The Python clients that share this environment, by name, for use within a test's own process."""

from compat.python_aiokafka.client import AioKafka
from compat.python_confluent_kafka.client import ConfluentKafka
from compat.python_kafka_python.client import KafkaPython
from compat.scenarios.python.client import Client

CLIENTS: dict[str, Client] = {client.name: client for client in (KafkaPython(), ConfluentKafka(), AioKafka())}
