"""Topics made on demand."""

import pytest
import trio
import trio.testing

from broker.config.definitions import Scope, find
from broker.metadata.image import ResourceType
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.metadata_records import RegisterBrokerRecord
from tests.broker.controller.node import ControllerNode
from tests.broker.metadata.records import broker


@pytest.fixture
def node() -> ControllerNode:
    started = ControllerNode({"num.partitions": "3"})
    started.start()
    return started


def register(node: ControllerNode, *brokers: RegisterBrokerRecord) -> None:
    node.raft.append([(record, max(type(record).versions)) for record in brokers])
    node.raft.flush()
    node.raft.feed.image = node.raft.latest


async def carry_out(node: ControllerNode) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.controller.run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()


async def test_a_topic_has_the_broker_s_defaults(node: ControllerNode) -> None:
    outcomes: list[KafkaError | None] = []
    node.services.automatic_topics.ensure("a", outcomes.append)
    assert outcomes == []
    await carry_out(node)
    assert outcomes == [None]
    assert len(node.image.topics["a"].partitions) == 3
    assert node.image.topic_config("a") == {}


async def test_one_that_is_there_is_answered_at_once(node: ControllerNode) -> None:
    node.services.automatic_topics.create(["a"])
    await carry_out(node)
    outcomes: list[KafkaError | None] = []
    node.services.automatic_topics.ensure("a", outcomes.append)
    assert outcomes == [None]


async def test_all_who_wait_for_one_topic_get_it(node: ControllerNode) -> None:
    outcomes: list[KafkaError | None] = []
    for _ in range(3):
        node.services.automatic_topics.ensure("a", outcomes.append)
    await carry_out(node)
    assert outcomes == [None] * 3


async def test_one_is_there_when_this_broker_has_heard_of_it(node: ControllerNode) -> None:
    """The controller of another node has made it some time before."""
    outcomes: list[KafkaError | None] = []
    topics = node.services.automatic_topics
    topics._under_way["a"] = [outcomes.append]
    topics._finish("a", KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS))
    assert outcomes == []
    topics.create(["b"])
    await carry_out(node)
    assert outcomes == []
    topics.create(["a"])
    await carry_out(node)
    assert outcomes == [None]


async def test_a_topic_that_somebody_else_made_meanwhile_will_do(node: ControllerNode) -> None:
    from broker.controller.automatic_topics import topic_defaults
    from broker.controller.topics import NewTopic, create_topics

    outcomes: list[KafkaError | None] = []
    node.controller.submit(
        lambda image: create_topics(image, [NewTopic("a", 1, 1)], topic_defaults(node.services)),
        lambda _: None,
    )
    node.services.automatic_topics.ensure("a", outcomes.append)
    await carry_out(node)
    assert outcomes == [None]
    assert len(node.image.topics["a"].partitions) == 1


async def test_one_that_cannot_be_made(node: ControllerNode) -> None:
    outcomes: list[KafkaError | None] = []
    node.services.automatic_topics.ensure("a.b", outcomes.append)
    await carry_out(node)
    node.services.automatic_topics.ensure("a_b", outcomes.append)
    await carry_out(node)
    assert outcomes[0] is None
    assert outcomes[1] is not None
    assert outcomes[1].code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert "topic a_b could not be created automatically" in node.lines.getvalue()
    node.services.automatic_topics.ensure("a_b", outcomes.append)  # asked again, tried again
    await carry_out(node)
    assert len(outcomes) == 3


async def test_the_metadata_log_is_never_made(node: ControllerNode) -> None:
    node.services.automatic_topics.create(["__cluster_metadata"])
    await carry_out(node)
    assert node.image.topics == {}


INTERNAL = {
    "__consumer_offsets": {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    },
    "__transaction_state": {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "2",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    },
    "__share_group_state": {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "2",
        "retention.ms": "-1",
        "segment.bytes": "104857600",
    },
}
"""As Kafka's own log has them."""


@pytest.mark.parametrize("name", INTERNAL)
async def test_internal_topics(node: ControllerNode, name: str) -> None:
    node.services.automatic_topics.create([name])
    await carry_out(node)
    topic = node.image.topics[name]
    assert len(topic.partitions) == 50
    assert {partition.replicas for partition in topic.partitions} == {(1,)}  # 3, where there are 3 brokers
    assert node.image.config(ResourceType.TOPIC, name) == INTERNAL[name]


async def test_internal_topics_as_the_settings_want_them() -> None:
    node = ControllerNode({"offsets.topic.num.partitions": "7", "offsets.topic.segment.bytes": "2000000"})
    node.start()
    node.services.automatic_topics.create(["__consumer_offsets"])
    await carry_out(node)
    assert len(node.image.topics["__consumer_offsets"].partitions) == 7
    assert node.image.topic_config("__consumer_offsets")["segment.bytes"] == "2000000"


@pytest.mark.acts(
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
)
@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("__consumer_offsets", "offsets.topic."),
        ("__transaction_state", "transaction.state.log."),
        ("__share_group_state", "share.coordinator.state.topic."),
    ],
)
async def test_internal_topics_have_the_replicas_that_are_wanted(name: str, prefix: str) -> None:
    """As many as the settings say, where there are enough brokers."""
    wanted = {f"{prefix}replication.factor": "2", f"{prefix}min.isr": "1"}
    node = ControllerNode({name: value for name, value in wanted.items() if find(Scope.BROKER, name)})
    node.start()
    register(node, broker(2), broker(3))
    node.services.automatic_topics.create([name])
    await carry_out(node)
    assert {len(partition.replicas) for partition in node.image.topics[name].partitions} == {2}
    if name != "__consumer_offsets":
        assert node.image.topic_config(name)["min.insync.replicas"] == "1"


async def test_internal_topics_have_replicas_on_brokers_that_are_just_starting(node: ControllerNode) -> None:
    """A cluster's first client may come before all of its nodes are awake."""
    register(node, broker(2, fenced=True), broker(3, fenced=True))
    node.services.automatic_topics.create(["__consumer_offsets"])
    await carry_out(node)
    partitions = node.image.topics["__consumer_offsets"].partitions
    assert {(each.leader, len(each.replicas), each.isr) for each in partitions} == {(1, 3, (1,))}


async def test_internal_topics_have_replicas_on_brokers_that_were_stopped_for_a_moment(
    node: ControllerNode,
) -> None:
    """A clean stop leaves the broker fenced, and still in the shutdown that it has finished."""
    stopped = [broker(number, fenced=True) for number in (2, 3)]
    for record in stopped:
        record.in_controlled_shutdown = True
    register(node, *stopped)
    node.services.automatic_topics.create(["__consumer_offsets"])
    await carry_out(node)
    partitions = node.image.topics["__consumer_offsets"].partitions
    assert {(each.leader, len(each.replicas), each.isr) for each in partitions} == {(1, 3, (1,))}


async def test_internal_topics_do_without_brokers_that_take_no_replicas(node: ControllerNode) -> None:
    """One is about to stop, the other's only directory is cordoned: to wait for them would be in vain."""
    stopping, cordoned = broker(2), broker(3)
    stopping.in_controlled_shutdown = True
    cordoned.cordoned_log_dirs = cordoned.log_dirs
    register(node, stopping, cordoned)
    node.services.automatic_topics.create(["__consumer_offsets"])
    await carry_out(node)
    partitions = node.image.topics["__consumer_offsets"].partitions
    assert {each.replicas for each in partitions} == {(1,)}


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("__consumer_offsets", "offsets.topic.replication.factor"),
        ("__transaction_state", "transaction.state.log.replication.factor"),
        ("__share_group_state", "share.coordinator.state.topic.replication.factor"),
    ],
)
async def test_an_internal_topic_waits_for_as_many_brokers_as_are_asked_for(name: str, setting: str) -> None:
    node = ControllerNode({setting: "3"})
    node.start()
    register(node, broker(2))
    outcomes: list[KafkaError | None] = []
    node.services.automatic_topics.ensure(name, outcomes.append)
    await carry_out(node)
    assert [outcome.code for outcome in outcomes if outcome] == [ErrorCode.INVALID_REPLICATION_FACTOR]
    register(node, broker(3))
    node.services.automatic_topics.ensure(name, outcomes.append)
    await carry_out(node)
    assert outcomes[1:] == [None]
    assert {len(partition.replicas) for partition in node.image.topics[name].partitions} == {3}
