"""The records of altered settings.  What is refused, and in which words, stands in a recorded transcript."""

from collections.abc import Sequence

import pytest

from broker.config.broker_config import BrokerConfig
from broker.controller.decision import RECORDS_MAX
from broker.controller.settings import (
    VALUE_LENGTH_MAX,
    Alteration,
    Change,
    Operation,
    Outcome,
    alter_settings,
)
from broker.metadata import replay
from broker.metadata.image import MetadataImage, empty_image
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.schema import Message
from protocol.stored.metadata_records import (
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
)

TOPIC, BROKER, GROUP = 2, 4, 32

Written = tuple[list[Message], Sequence[Outcome]]


def image(*records: Message, elr: bool = True) -> MetadataImage:
    """A cluster of broker 1 with a topic ``t``."""
    topic_id = bytes(range(16))
    first: list[Message] = [
        FeatureLevelRecord(name="metadata.version", feature_level=33),
        FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=int(elr)),
        RegisterBrokerRecord(broker_id=1, fenced=False),
        TopicRecord(name="t", topic_id=topic_id),
        PartitionRecord(partition_id=0, topic_id=topic_id, replicas=[1], isr=[1], leader=1),
    ]
    return replay.apply(empty_image("c"), [*first, *records], offset=10, epoch=1)[0]


def config_record(kind: int, resource: str, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


def altered(before: MetadataImage, *alterations: Alteration, validate_only: bool = False) -> Written:
    decision = alter_settings(before, alterations, BrokerConfig({}), validate_only=validate_only)
    assert all(version == 0 for _, version in decision.records)
    return [record for record, _ in decision.records], decision.reply


def sets(kind: int, resource: str, name: str, value: str | None) -> Alteration:
    return Alteration(kind, resource, [Change(name, Operation.SET, value)])


def test_a_change_is_a_record() -> None:
    records, outcomes = altered(image(), sets(TOPIC, "t", "retention.ms", " 5 "))
    assert records == [config_record(TOPIC, "t", "retention.ms", " 5 ")]
    assert outcomes == [None]


def test_what_is_so_already_is_no_record_except_of_a_broker() -> None:
    before = image(
        config_record(TOPIC, "t", "retention.ms", "5"), config_record(BROKER, "1", "num.io.threads", "9")
    )
    assert altered(before, sets(TOPIC, "t", "retention.ms", "5"))[0] == []
    delete = Alteration(TOPIC, "t", [Change("segment.ms", Operation.DELETE, None)])
    assert altered(before, delete)[0] == []
    again = altered(before, sets(BROKER, "1", "num.io.threads", "9"))[0]
    assert again == [config_record(BROKER, "1", "num.io.threads", "9")]


def test_only_validating_writes_nothing() -> None:
    records, outcomes = altered(image(), sets(TOPIC, "t", "retention.ms", "5"), validate_only=True)
    assert (records, outcomes) == ([], [None])


def test_one_refusal_does_not_stop_the_others() -> None:
    records, outcomes = altered(
        image(),
        sets(TOPIC, "t", "retention.ms", "x"),
        sets(TOPIC, "u", "retention.ms", "5"),
        sets(GROUP, "g", "consumer.session.timeout.ms", "50000"),
    )
    assert records == [config_record(GROUP, "g", "consumer.session.timeout.ms", "50000")]
    codes = [outcome.code if outcome else ErrorCode.NONE for outcome in outcomes]
    assert codes == [ErrorCode.INVALID_CONFIG, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]


def test_replacing_everything_removes_what_is_not_named() -> None:
    before = image(
        config_record(TOPIC, "t", "retention.ms", "5"),
        config_record(TOPIC, "t", "segment.ms", "6"),
        config_record(TOPIC, "t", "flush.ms", "7"),
    )
    changes = [Change("retention.ms", Operation.SET, "5"), Change("segment.ms", Operation.SET, "8")]
    records, _ = altered(before, Alteration(TOPIC, "t", changes, is_complete=True))
    assert records == [
        config_record(TOPIC, "t", "segment.ms", "8"),
        config_record(TOPIC, "t", "flush.ms", None),
    ]


@pytest.mark.parametrize(
    ("kind", "resource", "cleared"), [(TOPIC, "t", "t"), (BROKER, "", "")], ids=["topic", "cluster"]
)
def test_another_minimum_of_replicas_makes_nobody_eligible(kind: int, resource: str, cleared: str) -> None:
    records, _ = altered(image(), sets(kind, resource, "min.insync.replicas", "2"))
    assert records[1:] == [ClearElrRecord(topic_name=cleared)]
    without, _ = altered(image(elr=False), sets(kind, resource, "min.insync.replicas", "2"))
    assert without == records[:1]


def test_without_eligible_replicas_each_broker_may_have_a_minimum() -> None:
    before = image(elr=False)
    assert altered(before, sets(BROKER, "1", "min.insync.replicas", "2"))[1] == [None]
    delete = Alteration(BROKER, "", [Change("min.insync.replicas", Operation.DELETE, None)])
    assert altered(before, delete)[1] == [None]


@pytest.mark.parametrize(
    ("resource", "code", "told"),
    [
        ("9", ErrorCode.BROKER_ID_NOT_REGISTERED, "No node with id 9 found."),
        ("-1", ErrorCode.INVALID_REQUEST, "Invalid negative broker ID."),
        ("x", ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number."),
        ("1_0", ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number."),
    ],
)
def test_a_broker_must_be_one_of_the_cluster(resource: str, code: ErrorCode, told: str) -> None:
    _, (outcome,) = altered(image(), sets(BROKER, resource, "num.io.threads", "9"))
    assert outcome is not None
    assert (outcome.code, outcome.message) == (code, told)


def test_a_node_that_is_only_a_controller_has_settings_too() -> None:
    before = image(RegisterControllerRecord(controller_id=9))
    assert altered(before, sets(BROKER, "9", "num.io.threads", "9"))[1] == [None]


def test_a_list_that_has_grown_too_long_is_refused() -> None:
    replicas = ",".join(f"0:{number}" for number in range(4000))
    before = image(config_record(TOPIC, "t", "leader.replication.throttled.replicas", replicas))
    more = ",".join(f"1:{number}" for number in range(4000))
    change = Change("leader.replication.throttled.replicas", Operation.APPEND, more)
    assert len(replicas) < VALUE_LENGTH_MAX < len(replicas) + len(more)
    records, (outcome,) = altered(before, Alteration(TOPIC, "t", [change]))
    assert records == []
    assert outcome is not None
    assert outcome.code is ErrorCode.INVALID_CONFIG
    assert outcome.message is not None
    assert outcome.message.endswith("exceeds the maximum value size of 32767 bytes.")


@pytest.mark.parametrize(
    ("before", "operation", "value", "after"),
    [
        ("0:1,,0:2", Operation.APPEND, "0:3", "0:1,0:2,0:3"),
        ("0:1", Operation.APPEND, "0:2,", "0:1,0:2"),
        ("0:1", Operation.APPEND, ",", None),
        ("0:1,0:2", Operation.SUBTRACT, "0:2,,", "0:1"),
        ("0:1", Operation.SUBTRACT, "0:1", ""),
    ],
)
def test_lists_are_split_as_java_splits_them(
    before: str, operation: Operation, value: str, after: str | None
) -> None:
    name = "leader.replication.throttled.replicas"
    change = Alteration(TOPIC, "t", [Change(name, operation, value)])
    records, (outcome,) = altered(image(config_record(TOPIC, "t", name, before)), change)
    assert outcome is None
    assert records == ([] if after is None else [config_record(TOPIC, "t", name, after)])


def test_what_a_list_has_by_default_is_not_what_brokers_were_started_with() -> None:
    change = Alteration(TOPIC, "t", [Change("cleanup.policy", Operation.APPEND, "compact")])
    config = BrokerConfig({"log.cleanup.policy": "compact"})
    ((record, _),), _ = alter_settings(image(), [change], config, validate_only=False)
    assert record == config_record(TOPIC, "t", "cleanup.policy", "delete,compact")


def test_too_much_for_one_request() -> None:
    many = [
        sets(GROUP, f"g{number}", "consumer.session.timeout.ms", "50000") for number in range(RECORDS_MAX)
    ]
    assert len(altered(image(), *many)[0]) == RECORDS_MAX
    with pytest.raises(KafkaError, match="excessively large batch operation"):
        altered(image(), *many, sets(TOPIC, "t", "retention.ms", "5"))


def test_a_type_that_is_none() -> None:
    _, (outcome,) = altered(image(), sets(77, "x", "a", "b"))
    assert outcome is not None
    assert outcome.message == "Unknown resource type 77"


@pytest.mark.parametrize("value", ["/a", "", None])
def test_cordoned_directories_need_a_level_that_knows_them(value: str | None) -> None:
    wish = sets(BROKER, "1", "cordoned.log.dirs", value)
    old = image(FeatureLevelRecord(name="metadata.version", feature_level=29))
    records, (refused,) = altered(old, wish)
    assert records == []
    assert refused is not None
    assert refused.code is ErrorCode.INVALID_CONFIG
    assert refused.message == (
        "The cordoned.log.dirs configuration value cannot be set because it requires "
        "metadata.version >= 4.3-IV0"
    )
    new = image(FeatureLevelRecord(name="metadata.version", feature_level=30))
    assert altered(new, wish)[1] == [None]


@pytest.mark.parametrize(
    ("value", "is_refused"),
    [("/b , /a", False), ("/b", False), (" ", False), (None, False), ("/a,/c", True), ("/A", True)],
)
def test_which_directories_are_cordoned_is_for_their_broker_to_say(
    value: str | None, is_refused: bool
) -> None:
    before = image(config_record(BROKER, "1", "cordoned.log.dirs", "/a, /b"))
    wish = [sets(BROKER, "1", "cordoned.log.dirs", value)]
    for seen_by_broker in (True, False):
        records, (outcome,) = alter_settings(
            before, wish, BrokerConfig({}), validate_only=False, seen_by_broker=seen_by_broker
        )
        if seen_by_broker or not is_refused:
            assert outcome is None
            continue
        assert records == []
        assert outcome is not None
        assert outcome.code is ErrorCode.INVALID_CONFIG
        assert outcome.message == (
            "When updating cordoned.log.dirs via controllers,  the new value must be a subset of the current "
            "configuration value."
        )
