"""confluent-kafka's messages as the scenarios' records."""

from typing import Any, TypeVar

from confluent_kafka import Message

from compat.scenarios.python.client import Place, TakenRecord

Known = TypeVar("Known")


def place_of(message: Message) -> Place:
    offset = message.offset()
    return Place(known(message.partition()), -1 if offset is None or offset < 0 else offset)


def taken_record(message: Message) -> TakenRecord:
    headers: Any = message.headers() or []
    return TakenRecord(
        topic=known(message.topic()),
        place=place_of(message),
        key=message.key(),
        value=message.value(),
        headers=list(headers),
        timestamp_ms=message.timestamp()[1],
    )


def known(content: Known | None) -> Known:
    assert content is not None
    return content
