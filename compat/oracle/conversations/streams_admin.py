"""Streams groups among others: their offsets, their operators, and groups of other kinds."""

from typing import Any, Final

from compat.oracle.conversation import conversation
from compat.oracle.conversations import consumer_groups, groups, offsets, share_groups, transactional_offsets
from compat.oracle.conversations.consumer_offsets import fetch_as
from compat.oracle.conversations.offsets import commit, fetch
from compat.oracle.conversations.streams_groups import (
    BEAT,
    DESCRIBE,
    FIRST,
    SECOND,
    at_once,
    beat,
    describe,
    join,
    keeping,
    leave,
    owned,
    reading,
)
from compat.oracle.conversations.transactional_offsets import open_for
from compat.oracle.conversations.transactions import COMMIT, begin, end, until_at_rest
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    TopologyDescription,
    TopologyDescriptionNode,
    TopologyDescriptionSubtopology,
)
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

STRANGER: Final = "stranger"


@conversation(ApiKey.OFFSET_COMMIT)
def committing_as_a_member(talk: Talk) -> None:
    topic, other = talk.topic("t", 4), talk.topic("u", 1)
    group = at_once(talk)
    app = reading(topic)
    talk.ask("join", join(group, FIRST, app))
    talk.ask("as a member", commit(group, (topic, 0, 5), member=FIRST, generation=2))
    talk.ask("what it does not read", commit(group, (other, 0, 5), member=FIRST, generation=2))
    talk.ask("of a newer epoch", commit(group, (topic, 0, 6), member=FIRST, generation=3))
    talk.ask("of an older epoch", commit(group, (topic, 0, 6), member=FIRST, generation=1))
    talk.ask("of no epoch", commit(group, (topic, 0, 6), member=FIRST))
    talk.ask("of epoch 0", commit(group, (topic, 0, 6), member=FIRST, generation=0))
    talk.ask("as a stranger", commit(group, (topic, 0, 6), member=STRANGER, generation=2))
    talk.ask("as nobody", commit(group, (topic, 0, 6)))
    talk.ask("another joins", join(group, SECOND, app), by=SECOND)
    talk.ask("it hears of it", beat(group, FIRST, 2))
    talk.ask("what it has to give up", commit(group, (topic, 3, 7), member=FIRST, generation=2))
    talk.ask("it gives up", beat(group, FIRST, 2, owns=owned({"0": [0, 1]})))
    talk.ask("what it kept, of the last epoch", commit(group, (topic, 0, 8), member=FIRST, generation=2))
    talk.ask("what it gave up, of the last epoch", commit(group, (topic, 3, 8), member=FIRST, generation=2))
    both = commit(group, (topic, 0, 9), (topic, 3, 9), member=FIRST, generation=2)
    talk.ask("both, of the last epoch", both)
    talk.ask(
        "what it does not read, of the last epoch", commit(group, (other, 0, 9), member=FIRST, generation=2)
    )
    talk.ask("what it gave up, of this epoch", commit(group, (topic, 3, 9), member=FIRST, generation=3))
    talk.ask("what came of it", fetch(talk, group))
    talk.ask("the first leaves", leave(group, FIRST))
    talk.ask("the second leaves", leave(group, SECOND), by=SECOND)
    talk.ask("as nobody, when nobody is left", commit(group, (topic, 0, 1)))
    talk.ask("as a member that has left", commit(group, (topic, 0, 1), member=FIRST, generation=3))


@conversation(ApiKey.OFFSET_COMMIT)
def committing_as_a_static_member(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    group = at_once(talk)
    app = reading(topic)
    talk.ask("join", join(group, FIRST, app, instance="i"))
    talk.ask("commit", commit(group, (topic, 0, 5), member=FIRST, generation=2, instance="i"))
    talk.ask("go for a while", leave(group, FIRST, instance="i", epoch=-2))
    talk.ask("commit when gone", commit(group, (topic, 0, 6), member=FIRST, generation=2, instance="i"))
    talk.ask("commit of epoch -2", commit(group, (topic, 0, 6), member=FIRST, generation=-2, instance="i"))
    talk.ask("come back", join(group, SECOND, app, instance="i"), by=SECOND)
    talk.ask("commit of the old id", commit(group, (topic, 0, 7), member=FIRST, generation=2, instance="i"))
    talk.ask("commit of the new id", commit(group, (topic, 0, 8), member=SECOND, generation=2, instance="i"))


@conversation(ApiKey.TXN_OFFSET_COMMIT)
def committing_in_a_transaction(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    group = at_once(talk)
    app = reading(topic)
    talk.ask("join", join(group, FIRST, app))
    writer = begin(talk)
    open_for(talk, writer, group)

    def committed(offset: int, **member: Any) -> TxnOffsetCommitRequest:
        return transactional_offsets.commit(writer, group, (topic, 0, offset), **member)

    talk.ask("as a member", committed(5, member=FIRST, generation=2))
    talk.ask("of a newer epoch", committed(6, member=FIRST, generation=3))
    talk.ask("of an older epoch", committed(6, member=FIRST, generation=1))
    talk.ask("of no epoch", committed(6, member=FIRST))
    talk.ask("as a stranger", committed(6, member=STRANGER, generation=2))
    talk.ask("as nobody", committed(7))
    talk.ask("as nobody, of an epoch", committed(8, generation=2))
    talk.ask("another joins", join(group, SECOND, app), by=SECOND)
    talk.ask("it gives up", beat(group, FIRST, 2, owns=owned({"0": [0]})))
    talk.ask("what it kept, when it has given up", committed(10, member=FIRST, generation=2))
    given_up = transactional_offsets.commit(writer, group, (topic, 1, 10), member=FIRST, generation=2)
    talk.ask("what it gave up, of the last epoch", given_up)
    talk.quietly(end(writer, COMMIT), version=4)
    until_at_rest(talk, writer)
    talk.ask("what came of it", fetch(talk, group))


@conversation(ApiKey.OFFSET_FETCH, rounds="9+")
def fetching_as_a_member(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    group = at_once(talk)
    talk.ask("join", join(group, FIRST, reading(topic)))
    talk.ask("commit", commit(group, (topic, 0, 5), member=FIRST, generation=2))
    talk.ask("as a member", fetch_as(talk, group, FIRST, 2, topic))
    talk.ask("of a newer epoch", fetch_as(talk, group, FIRST, 3, topic))
    talk.ask("of an older epoch", fetch_as(talk, group, FIRST, 1, topic))
    talk.ask("of no epoch", fetch_as(talk, group, FIRST, -1, topic))
    talk.ask("as a stranger", fetch_as(talk, group, STRANGER, 2, topic))
    talk.ask("as nobody", fetch_as(talk, group, None, -1, topic))
    talk.ask("as nobody with an epoch", fetch_as(talk, group, None, 2, topic))
    talk.ask("with an empty id", fetch_as(talk, group, "", -1, topic))


@conversation(ApiKey.OFFSET_DELETE, ApiKey.OFFSET_FETCH)
def deleting_offsets(talk: Talk) -> None:
    topic, other = talk.topic("t", 1), talk.topic("u", 1)
    group = at_once(talk)
    talk.ask("join", join(group, FIRST, reading(topic)))
    talk.ask("commit", commit(group, (topic, 0, 5), (other, 0, 6), member=FIRST, generation=2))
    talk.ask("of a topic that is read", offsets.delete(group, (topic.name, 0)))
    talk.ask("of a topic that is not", offsets.delete(group, (other.name, 0)))
    talk.ask("what is left", fetch(talk, group))
    talk.ask("leave", leave(group, FIRST))
    talk.ask("of a topic that nobody reads any more", offsets.delete(group, (topic.name, 0)))
    talk.ask("what is left at last", fetch(talk, group))


@conversation(BEAT, DESCRIBE, ApiKey.DELETE_GROUPS, rounds="0-3")
def deleting_groups(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    group = at_once(talk)
    app = keeping(talk, topic, 1)
    talk.ask("join", join(group, FIRST, app))
    talk.ask("commit", commit(group, (topic, 0, 5), member=FIRST, generation=2))
    talk.ask("with a member", DeleteGroupsRequest(groups_names=[group]))
    talk.ask("leave", leave(group, FIRST))
    talk.ask("without members", DeleteGroupsRequest(groups_names=[group]))
    talk.ask("describe", describe(group))
    talk.ask("its offsets", fetch(talk, group))
    talk.ask("again", DeleteGroupsRequest(groups_names=[group]))
    talk.ask("begin again, with another topology", join(group, FIRST, reading(topic)))


@conversation(ApiKey.LIST_GROUPS)
def listing(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    talk.quietly(join(at_once(talk, "stable"), FIRST, reading(topic)))
    talk.quietly(join(at_once(talk, "missing"), FIRST, reading(talk.name("nowhere"))))
    talk.quietly(join(talk.name("waiting"), FIRST, reading(topic)))
    empty = at_once(talk, "empty")
    talk.quietly(join(empty, FIRST, reading(topic)))
    talk.quietly(leave(empty, FIRST))
    talk.settle_groups()
    talk.ask("all", ListGroupsRequest())
    talk.ask("of their type", ListGroupsRequest(types_filter=["Streams"]))
    talk.ask("of another type", ListGroupsRequest(types_filter=["consumer"]))
    for state in ("stable", "Stable", "NotReady", "Not_Ready", "Assigning", "eMPTY", "Reconciling", "Dead"):
        talk.ask(f"in the state {state}", ListGroupsRequest(states_filter=[state]))


@conversation(BEAT, DESCRIBE)
def groups_of_other_kinds(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    app = reading(topic)
    classic, consumers, sharers = (talk.name(kind) for kind in ("classic", "consumers", "sharers"))
    groups.form(talk, classic)
    talk.quietly(consumer_groups.join(consumers, FIRST, topic))
    talk.quietly(share_groups.beat(sharers, FIRST, 0, topics=[topic]))
    talk.settle_groups()
    for kind, group in (("classic", classic), ("consumer", consumers), ("share", sharers)):
        talk.ask(f"join a {kind} group", join(group, SECOND, app))
        talk.ask(f"heartbeat in a {kind} group", beat(group, SECOND, 1))
        talk.ask(f"leave a {kind} group", leave(group, SECOND))
        talk.ask(f"describe a {kind} group", describe(group))
    streams = at_once(talk, "streams")
    talk.ask("somebody joins", join(streams, FIRST, app))
    talk.settle_groups()
    talk.ask("a consumer joins", consumer_groups.join(streams, SECOND, topic))
    talk.ask("a consumer's heartbeat", consumer_groups.beat(streams, SECOND, 1))
    talk.ask("a sharer joins", share_groups.beat(streams, SECOND, 0, topics=[topic]))
    talk.ask("a classic member joins", groups.join(streams))
    talk.ask("described as a classic group", DescribeGroupsRequest(groups=[streams]))
    talk.ask("described as a consumer group", ConsumerGroupDescribeRequest(group_ids=[streams]))
    talk.ask("described as a share group", share_groups.describe(streams))


@conversation(BEAT, DESCRIBE)
def groups_that_were_of_another_kind(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    app = reading(topic)
    committed = at_once(talk, "committed")
    talk.ask("offsets of nobody", commit(committed, (topic, 0, 5)))
    talk.ask("join a group with offsets", join(committed, FIRST, app))
    talk.ask("its offsets", fetch(talk, committed))
    consumed = at_once(talk, "consumed")
    talk.quietly(consumer_groups.join(consumed, FIRST, topic))
    talk.quietly(consumer_groups.leave(consumed, FIRST))
    talk.ask("join an empty consumer group", join(consumed, FIRST, app))
    shared = at_once(talk, "shared")
    talk.quietly(share_groups.beat(shared, FIRST, 0, topics=[topic]))
    talk.quietly(share_groups.beat(shared, FIRST, -1))
    talk.ask("join an empty share group", join(shared, FIRST, app))
    streams = at_once(talk, "streams")
    talk.quietly(join(streams, FIRST, app))
    talk.quietly(leave(streams, FIRST))
    talk.settle_groups()
    talk.ask("a consumer joins an empty streams group", consumer_groups.join(streams, SECOND, topic))
    talk.ask("a sharer joins an empty streams group", share_groups.beat(streams, SECOND, 0, topics=[topic]))
    talk.ask("a classic member joins an empty streams group", groups.join(streams))


@conversation(DESCRIBE)
def describing(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    group = at_once(talk)
    talk.quietly(join(group, FIRST, reading(topic), rack="r", tags={"a": "b"}, endpoint=("h", 9)))
    talk.settle_groups()
    talk.ask("with operations", describe(group, with_operations=True))
    talk.ask("unknown ones", describe(talk.name("h"), "", group))
    talk.ask("the same twice", describe(group, group))
    talk.ask("none", describe())
    wanted = StreamsGroupDescribeRequest(group_ids=[group, talk.name("h")], include_topology_description=True)
    talk.ask("with its topology", wanted)


@conversation(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE)
def descriptions_of_topologies(talk: Talk) -> None:
    """Kafka keeps them with a plugin, which it comes without."""
    topic = talk.topic("t", 1)
    group = at_once(talk)
    talk.quietly(join(group, FIRST, reading(topic)))
    node = TopologyDescriptionNode(name="source", source_topics=[topic.name])
    said = TopologyDescription(
        subtopologies=[TopologyDescriptionSubtopology(subtopology_id="0", nodes=[node])]
    )

    def update(group: str, member: str, epoch: int = 0) -> StreamsGroupTopologyDescriptionUpdateRequest:
        return StreamsGroupTopologyDescriptionUpdateRequest(
            group_id=group, member_id=member, topology_epoch=epoch, topology_description=said
        )

    talk.ask("of a member", update(group, FIRST))
    talk.ask("of a stranger", update(group, STRANGER))
    talk.ask("of an unknown group", update(talk.name("h"), FIRST))
    talk.ask("of nothing", update("", "", -1))


@conversation(BEAT, DESCRIBE)
def settings_of_groups(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    group = at_once(
        talk,
        streams_heartbeat_interval_ms="6000",
        streams_session_timeout_ms="50000",
        streams_task_offset_interval_ms="20000",
        streams_acceptable_recovery_lag="77",
        streams_num_warmup_replicas="5",
        streams_num_standby_replicas="2",
    )
    app = keeping(talk, topic, 2)
    talk.ask("join", join(group, FIRST, app))
    talk.ask("another joins", join(group, SECOND, app), by=SECOND)
    consumer_groups.configure(talk, group, "streams.acceptable.recovery.lag", str(2**31 + 5))
    consumer_groups.configure(talk, group, "streams.heartbeat.interval.ms", "7000")
    talk.ask("they have changed", beat(group, SECOND, 3), by=SECOND)
    consumer_groups.configure(talk, group, "streams.num.standby.replicas", "1")
    talk.ask("there are fewer copies", beat(group, SECOND, 3), by=SECOND)
    talk.settle_groups()
    talk.ask("describe", describe(group))
