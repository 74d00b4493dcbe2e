"""Client libraries of other people behind one small interface, so that a test can ask the same of each."""

from compat.clients.aio_kafka import AioKafka
from compat.clients.confluent import Confluent
from compat.clients.kafka_python import KafkaPython
from compat.clients.library import CODECS, ClientLibrary, Place, Sample, TakenRecord, make_samples

LIBRARIES: dict[str, ClientLibrary] = {
    library.name: library for library in (KafkaPython(), Confluent(), AioKafka())
}

__all__ = ["CODECS", "LIBRARIES", "ClientLibrary", "Place", "Sample", "TakenRecord", "make_samples"]
