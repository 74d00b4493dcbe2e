"""The clients of the matrix, each with the command that plays scenarios with it."""

import sys
from collections.abc import Callable, Mapping
from importlib import metadata
from types import MappingProxyType
from typing import NamedTuple

from compat.c_kcat import command as kcat
from compat.c_kcat.catalogue import kcat_catalogue
from compat.connect import workers as connect
from compat.connect.catalogue import connect_catalogue
from compat.flink import program as flink
from compat.flink.catalogue import flink_catalogue
from compat.flink.jars import VERSION as FLINK_CONNECTOR_VERSION
from compat.go_driver import client as go_clients
from compat.go_sarama import versions as sarama_versions
from compat.java_client import program as java_client
from compat.node_driver import client as node_clients
from compat.oracle.jars import KAFKA_VERSION
from compat.python_kafka_python_old.environment import OLD_KAFKA_PYTHON
from compat.quix import program as quix
from compat.quix.catalogue import quix_catalogue
from compat.rust_rskafka import client as rskafka
from compat.scenarios.catalogue import Catalogue, shared
from compat.spring import program as spring
from compat.spring.catalogue import spring_catalogue
from compat.spring.jars import VERSION as SPRING_VERSION
from compat.streams import program as streams
from compat.streams.catalogue import streams_catalogue


class Driver(NamedTuple):
    """One client: a row of the matrix."""

    client: str
    """As the driver's outcomes call it."""
    language: str
    command: Callable[[], list[str]]
    """The command line, without the arguments that all drivers take.  Raises ClientMissing."""
    pinned_version: Callable[[], str]
    """The version that the project says it tries."""
    always: bool = True
    """Whether tests play it, too, and not only ``make matrix``."""
    catalogue: Callable[[], Catalogue] = shared
    """The scenarios that are played with it."""
    settings: Mapping[str, str] = MappingProxyType({})
    """What a broker is told for it; one without any is as it comes."""


def _python_driver(client: str, module: str) -> Driver:
    """A client that is installed beside the tests."""
    return Driver(
        client=client,
        language="Python",
        command=lambda: [sys.executable, "-m", f"compat.{module}"],
        pinned_version=lambda: metadata.version(client),
    )


def _java_driver(version: str) -> Driver:
    return Driver(
        client=java_client.client_of(version),
        language="Java",
        command=lambda: java_client.driver_command(version),
        pinned_version=lambda: version,
        always=version == java_client.NEWEST,
    )


def _node_driver(client: node_clients.NodeClient) -> Driver:
    return Driver(
        client=client.module,
        language="JavaScript",
        command=client.driver_command,
        pinned_version=client.pinned_version,
    )


def _kcat_command() -> list[str]:
    kcat.find_kcat()
    return [sys.executable, "-m", "compat.c_kcat"]


DRIVERS: dict[str, Driver] = {
    driver.client: driver
    for driver in (
        _python_driver("kafka-python", "python_kafka_python"),
        Driver(
            client="kafka-python (old)",
            language="Python",
            command=lambda: [str(OLD_KAFKA_PYTHON.find_python()), "-m", "compat.python_kafka_python_old"],
            pinned_version=OLD_KAFKA_PYTHON.pinned_version,
        ),
        _python_driver("confluent-kafka", "python_confluent_kafka"),
        _python_driver("aiokafka", "python_aiokafka"),
        *(_java_driver(version) for version in (java_client.NEWEST, *java_client.OLDER)),
        Driver(
            client="franz-go",
            language="Go",
            command=go_clients.FRANZ.driver_command,
            pinned_version=go_clients.FRANZ.pinned_version,
        ),
        Driver(
            client="sarama",
            language="Go",
            command=go_clients.SARAMA.driver_command,
            pinned_version=go_clients.SARAMA.pinned_version,
        ),
        Driver(
            client="kafka-go",
            language="Go",
            command=go_clients.SEGMENTIO.driver_command,
            pinned_version=go_clients.SEGMENTIO.pinned_version,
        ),
        Driver(
            client=sarama_versions.CLIENT,
            language="Go",
            command=lambda: go_clients.SARAMA.driver_command(".versions"),
            pinned_version=go_clients.SARAMA.pinned_version,
            catalogue=sarama_versions.versions_catalogue,
        ),
        _node_driver(node_clients.KAFKAJS),
        _node_driver(node_clients.PLATFORMATIC),
        Driver(
            client=rskafka.CRATE,
            language="Rust",
            command=rskafka.driver_command,
            pinned_version=rskafka.pinned_version,
        ),
        Driver(
            client=kcat.CLIENT,
            language="C",
            command=_kcat_command,
            pinned_version=lambda: kcat.VERSION,
            catalogue=kcat_catalogue,
        ),
        Driver(
            client=streams.CLIENT,
            language="Java",
            command=streams.driver_command,
            pinned_version=lambda: KAFKA_VERSION,
            catalogue=streams_catalogue,
            settings=streams.SETTINGS,
        ),
        Driver(
            client=connect.CLIENT,
            language="Java",
            command=connect.driver_command,
            pinned_version=lambda: KAFKA_VERSION,
            always=False,  # four workers, each of which takes seconds to start
            catalogue=connect_catalogue,
        ),
        Driver(
            client=spring.CLIENT,
            language="Java",
            command=spring.driver_command,
            pinned_version=lambda: SPRING_VERSION,
            catalogue=spring_catalogue,
        ),
        Driver(
            client=flink.CLIENT,
            language="Java",
            command=flink.driver_command,
            pinned_version=lambda: FLINK_CONNECTOR_VERSION,
            always=False,  # half a minute, most of which its jobs take to start
            catalogue=flink_catalogue,
        ),
        Driver(
            client=quix.CLIENT,
            language="Python",
            command=quix.driver_command,
            pinned_version=quix.QUIX.pinned_version,
            catalogue=quix_catalogue,
            settings=quix.SETTINGS,
        ),
    )
}
"""In the order of the tables."""
