"""Clients over their quotas are told so, and get everything all the same, a little later."""

import uuid

import pytest
from confluent_kafka import Consumer, Producer, ThrottleEvent

from compat.probe import split_address
from compat.python_clients import CLIENTS
from compat.scenarios.python.stage import Stage
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
)
from tests.support.raw_client import RawClient

pytestmark = pytest.mark.slow

RATE = 100_000.0
SIZES = [340_000] * 3
"""Somewhat more than may come at once, which is what comes in ten seconds."""


def alter(address: str, client_id: str, key: str, value: float | None) -> None:
    entry = AlterClientQuotasRequestEntryData(
        entity=[EntityData(entity_type="client-id", entity_name=client_id)],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None)],
    )
    with RawClient(split_address(address)) as client:
        answer = client.ask(AlterClientQuotasRequest(entries=[entry]), AlterClientQuotasResponse, 1)
    assert answer.entries[0].error_code == 0


def test_a_producer_and_a_consumer_hear_that_they_are_throttled(address: str) -> None:
    topic, client_id = f"quotas-{uuid.uuid4()}", f"client-{uuid.uuid4()}"
    with Stage(CLIENTS["confluent-kafka"], address) as stage:
        stage.topic(name=topic)
    events: list[ThrottleEvent] = []
    settings = {"bootstrap.servers": address, "client.id": client_id, "throttle_cb": events.append}
    values = [bytes([number]) * size for number, size in enumerate(SIZES)]

    alter(address, client_id, "producer_byte_rate", RATE)
    producer = Producer({**settings, "linger.ms": 0})
    for value in values:
        producer.produce(topic, value)
        assert producer.flush(30) == 0
    producer.poll(0)
    assert [event for event in events if event.throttle_time > 0], "the producer has heard nothing"

    events.clear()
    alter(address, client_id, "producer_byte_rate", None)
    alter(address, client_id, "consumer_byte_rate", RATE)
    consumer = Consumer(
        {
            **settings,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "max.partition.fetch.bytes": 340_000,
        }
    )
    consumer.subscribe([topic])
    taken: list[bytes | None] = []
    while len(taken) < len(values):
        (message,) = consumer.consume(1, timeout=30)
        taken.append(message.value())
    consumer.close()
    alter(address, client_id, "consumer_byte_rate", None)
    assert taken == values
    assert [event for event in events if event.throttle_time > 0], "the consumer has heard nothing"
