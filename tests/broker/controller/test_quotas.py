"""Quotas in the metadata log.  What is refused, and in which words, stands in the oracle."""

from collections.abc import Sequence

import pytest

from broker.controller.decision import RECORDS_MAX
from broker.controller.quotas import Alteration, alter_quotas, hosts_of
from broker.metadata import replay
from broker.metadata.image import MetadataImage, QuotaEntity, empty_image
from broker.metadata.snapshot import image_records
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from tests.broker.controller.node import ControllerNode

EMPTY = empty_image("cluster")
USER: QuotaEntity = (("user", "u"),)
BOTH: QuotaEntity = (("client-id", None), ("user", "u"))
ADDRESS: QuotaEntity = (("ip", "192.0.2.1"),)

ALTERATIONS = [
    Alteration(USER, [("producer_byte_rate", 5.0), ("request_percentage", 0.5)]),
    Alteration(BOTH, [("consumer_byte_rate", 7.0)]),
    Alteration(ADDRESS, [("connection_creation_rate", 9.0)]),
]
ALTERED = {
    USER: {"producer_byte_rate": 5.0, "request_percentage": 0.5},
    BOTH: {"consumer_byte_rate": 7.0},
    ADDRESS: {"connection_creation_rate": 9.0},
}


def altered(image: MetadataImage, alterations: Sequence[Alteration]) -> MetadataImage:
    records = [record for record, _ in alter_quotas(image, alterations).records]
    after, _ = replay.apply(image, records, offset=image.offset + len(records), epoch=1)
    return after


def test_quotas_come_and_go() -> None:
    image = altered(EMPTY, ALTERATIONS)
    assert image.quotas == ALTERED
    image = altered(image, [Alteration(USER, [("producer_byte_rate", None), ("request_percentage", 2.0)])])
    assert image.quotas == {**ALTERED, USER: {"request_percentage": 2.0}}
    image = altered(image, [Alteration(USER, [("request_percentage", None)])])
    assert USER not in image.quotas


def test_what_changes_nothing_is_not_written() -> None:
    image = altered(EMPTY, ALTERATIONS)
    again = [*ALTERATIONS, Alteration((("user", "v"),), [("consumer_byte_rate", None)])]
    decision = alter_quotas(image, again)
    assert decision.records == []
    assert set(decision.reply.values()) == {None}


def test_an_entity_with_a_mistake_is_not_altered_and_others_are() -> None:
    wrong = Alteration(USER, [("producer_byte_rate", 5.0), ("consumer_byte_rate", -1.0)])
    decision = alter_quotas(EMPTY, [wrong, ALTERATIONS[1]])
    assert [entity for entity, error in decision.reply.items() if error is not None] == [USER]
    assert len(decision.records) == 1


def test_hosts_without_an_address_are_refused() -> None:
    alteration = Alteration((("ip", "nowhere"),), [("connection_creation_rate", 1.0)])
    assert hosts_of([alteration, *ALTERATIONS]) == ["nowhere", "192.0.2.1"]
    (error,) = alter_quotas(EMPTY, [alteration], {"nowhere"}).reply.values()
    assert error is not None
    assert error.code == ErrorCode.INVALID_REQUEST


def test_too_many_records_at_once_are_refused() -> None:
    alterations = [
        Alteration((("user", f"u{number}"),), [("producer_byte_rate", 5.0)])
        for number in range(RECORDS_MAX + 1)
    ]
    with pytest.raises(KafkaError) as refusal:
        alter_quotas(EMPTY, alterations)
    assert refusal.value.code == ErrorCode.POLICY_VIOLATION
    assert len(alter_quotas(EMPTY, alterations[1:]).records) == RECORDS_MAX


def test_quotas_survive_restarts_and_crashes() -> None:
    node = ControllerNode()
    node.start()
    node.perform(lambda image: alter_quotas(image, ALTERATIONS))
    node.kill()
    assert node.start().quotas == ALTERED
    node.stop()
    assert node.start().quotas == ALTERED


def test_quotas_are_in_snapshots() -> None:
    image = altered(EMPTY, ALTERATIONS)
    records = [record for record, _ in image_records(image)]
    again, _ = replay.apply(EMPTY, records, offset=len(records), epoch=1)
    assert again.quotas == ALTERED
