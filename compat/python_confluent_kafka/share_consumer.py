"""confluent-kafka's share consumer behind the interface of the scenarios."""

from collections.abc import Mapping, Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import AcknowledgeType, KafkaException

from compat.python_confluent_kafka.common import raise_refusal, refusals
from compat.python_confluent_kafka.records import taken_record
from compat.scenarios.python.client import TIMEOUT_SECONDS, TakenRecord
from compat.scenarios.python.share_client import ACCEPT, REJECT, RELEASE, ShareConsumer, SharedRecord

TYPES = {
    ACCEPT: AcknowledgeType.ACCEPT,
    RELEASE: AcknowledgeType.RELEASE,
    REJECT: AcknowledgeType.REJECT,
}


class ConfluentShareConsumer(ShareConsumer):
    def __init__(self, options: Mapping[str, Any]) -> None:
        self._consumer = confluent_kafka.ShareConsumer(dict(options))
        self._closed = False

    def subscribe(self, topics: Sequence[str]) -> None:
        self._consumer.subscribe(list(topics))

    def poll(self, wait_seconds: float = 0.1) -> list[SharedRecord]:
        with refusals():
            messages = self._consumer.poll(wait_seconds)
        taken = []
        for message in messages:
            error = message.error()
            if error is not None:
                raise_refusal(error)
                raise KafkaException(error)
            taken.append(SharedRecord(taken_record(message), message.delivery_count() or 0))
        return taken

    def acknowledge(self, record: TakenRecord, how: str) -> None:
        place = record.place
        self._consumer.acknowledge_offset(record.topic, place.partition, place.offset, TYPES[how])

    def commit(self) -> None:
        with refusals():
            results = self._consumer.commit_sync(TIMEOUT_SECONDS)
            for failure in results.values():
                if failure is not None:
                    raise failure

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._consumer.close()
