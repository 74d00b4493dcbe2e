"""Clients over their quotas: what they are told, and what they get."""

from collections.abc import Mapping
from typing import Final

from compat.oracle.batches import batch
from compat.oracle.conversation import conversation
from compat.oracle.conversations import share_fetch
from compat.oracle.conversations.fetch import at, fetch
from compat.oracle.conversations.produce import produce
from compat.oracle.conversations.quotas import (
    CLIENT,
    FETCH,
    MUTATION,
    PRODUCE,
    REQUEST,
    USER,
    Entity,
    alter,
    caught_up,
    entry,
)
from compat.oracle.conversations.topics import ask_for, create, grow, new
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest
from protocol.messages.write_txn_markers import WriteTxnMarkersRequest

SLOW: Final = 10_000.0
"""Bytes a second."""

A_LITTLE_TOO_MUCH: Final = 101_000
"""Bytes that take somewhat more than ten seconds, over which a client may use ``SLOW`` that has just come."""

TOO_MUCH: Final = 115_000
"""Bytes that take more than the eleven seconds of any other client."""

SOON_EMPTY: Final = 20.0
"""Partitions a second."""

MORE_THAN_THERE_IS: Final = 300
"""Partitions: the bucket holds as many as come in during eleven seconds."""

ANONYMOUS: Final = "ANONYMOUS"
"""Who does not say who he is."""

NO_TIME: Final = 1e-9
"""A part of the broker's time that no request is short enough for."""


def limit(talk: Talk, limits: Mapping[str, Mapping[str, float | None]]) -> None:
    """Give clients quotas, or take them, and wait until they hold."""
    entries = [entry({CLIENT: client}, quotas) for client, quotas in limits.items()]
    talk.quietly(alter(*entries))
    caught_up(talk)
    caught_up(talk)


@conversation(ApiKey.PRODUCE)
def producing_too_much(talk: Talk) -> None:
    topic = talk.topic("t")
    fast, slow, silent = talk.name("fast"), talk.name("slow"), talk.name("silent")
    much = batch("x" * A_LITTLE_TOO_MUCH)
    limit(talk, {slow: {PRODUCE: SLOW}, silent: {PRODUCE: SLOW}, fast: {PRODUCE: 1e12}})
    talk.ask("by one who may", produce((topic, 0, much)), by=fast)
    talk.ask("by one who has no quota", produce((topic, 0, much)))
    talk.ask("too much", produce((topic, 0, much)), by=slow)
    talk.ask("afterwards", ask_for(topic.name), by=slow)
    talk.start("too much, in silence", produce((topic, 0, much), acks=0), by=silent)
    talk.ask("behind that", ask_for(topic.name), by=silent)
    talk.ask("all there", fetch(at(topic, offset=4)))
    limit(talk, {name: {PRODUCE: None} for name in (fast, slow, silent)})


@conversation(ApiKey.FETCH)
def fetching_too_much(talk: Talk) -> None:
    topic = talk.topic("t")
    talk.quietly(produce((topic, 0, batch("x" * A_LITTLE_TOO_MUCH))))
    talk.produce(topic, "a")
    fast, slow, opening = talk.name("fast"), talk.name("slow"), talk.name("opening")
    limit(talk, {slow: {FETCH: SLOW}, opening: {FETCH: SLOW}, fast: {FETCH: 1e12}})
    talk.ask("by one who may", fetch(at(topic, offset=1)), by=fast)
    talk.ask("too much", fetch(at(topic)), by=slow)
    talk.ask("a little", fetch(at(topic, offset=1)), by=slow)
    talk.ask("opening a session", fetch(at(topic), epoch=0), by=opening)
    limit(talk, {name: {FETCH: None} for name in (fast, slow, opening)})


@conversation(ApiKey.FETCH, rounds="7+")
def sessions_of_throttled_consumers(talk: Talk) -> None:
    topic = talk.topic("t")
    talk.quietly(produce((topic, 0, batch("x" * TOO_MUCH))))
    slow = talk.name("slow")
    session = talk.ask("open", fetch(at(topic, offset=1), epoch=0), by=slow).session_id
    limit(talk, {slow: {FETCH: SLOW}})
    talk.ask("too much", fetch(at(topic), session=session, epoch=1), by=slow)
    talk.ask("nothing", fetch(at(topic, offset=1), session=session, epoch=2), by=slow)
    limit(talk, {slow: {FETCH: None}})
    talk.produce(topic, "a")
    talk.ask("without a quota", fetch(session=session, epoch=3), by=slow)


@conversation(ApiKey.CREATE_TOPICS)
def making_too_many_topics(talk: Talk) -> None:
    client, other = talk.name("c"), talk.name("o")
    limit(talk, {client: {MUTATION: SOON_EMPTY}, other: {MUTATION: 1e9}})
    many = create(new(talk.name("t"), MORE_THAN_THERE_IS), validate_only=True)
    talk.ask("by one who may", many, by=other)
    talk.ask("many", many, by=client)
    if talk.version_of(ApiKey.CREATE_TOPICS) >= 6:
        two = create(new(talk.name("u")), new(talk.name("bad name")), new(talk.name("v"), 2))
        talk.ask("any more", two, by=client)
    limit(talk, {client: {MUTATION: None}, other: {MUTATION: None}})


@conversation(ApiKey.CREATE_PARTITIONS)
def making_too_many_partitions(talk: Talk) -> None:
    topic = talk.topic("t")
    client = talk.name("c")
    limit(talk, {client: {MUTATION: SOON_EMPTY}})
    talk.ask("many", grow((topic.name, MORE_THAN_THERE_IS), validate_only=True), by=client)
    if talk.version_of(ApiKey.CREATE_PARTITIONS) >= 3:
        talk.ask("any more", grow((topic.name, 2), (talk.name("nowhere"), 2)), by=client)
    limit(talk, {client: {MUTATION: None}})


@conversation(ApiKey.DELETE_TOPICS)
def deleting_too_many_topics(talk: Talk) -> None:
    first, second = talk.topic("t"), talk.topic("u", 3)
    client = talk.name("c")
    limit(talk, {client: {MUTATION: SOON_EMPTY}})
    version = talk.version_of(ApiKey.DELETE_TOPICS)

    def delete(label: str, *names: str) -> None:
        request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=30_000)
        if version >= 6:
            states = [DeleteTopicState(name=each) for each in names]
            request = DeleteTopicsRequest(topics=states, timeout_ms=30_000)
        talk.ask(label, request, by=client)

    many = create(new(talk.name("v"), MORE_THAN_THERE_IS), validate_only=True)
    talk.ask("many made", many, by=client, version=6)
    if version >= 5:
        delete("any, and one that is not there", first.name, talk.name("nowhere"))
    else:
        delete("any", first.name, second.name)
    limit(talk, {client: {MUTATION: None}})


@conversation(
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.HEARTBEAT,
    ApiKey.LIST_GROUPS,
    ApiKey.METADATA,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.WRITE_TXN_MARKERS,
    rounds="0-6",
)
def taking_too_much_time(talk: Talk) -> None:
    topic = talk.topic("t")
    clients = [talk.name(f"c{number}") for number in range(9)]
    limit(talk, {client: {REQUEST: NO_TIME} for client in clients})
    requests = (
        ("the cluster", DescribeClusterRequest()),
        ("a heartbeat", HeartbeatRequest(group_id=talk.name("g"), member_id="m")),
        ("groups", ListGroupsRequest()),
        ("topics", ask_for(topic.name)),
        ("what needs no authentication", SaslHandshakeRequest(mechanism="PLAIN")),
        ("markers, which are exempt", WriteTxnMarkersRequest()),
        ("records", produce((topic, 0, batch("a")))),
        ("what there is", fetch(at(topic))),
        ("what is refused", create(new("a bad name"))),
    )
    for (label, request), client in zip(requests, clients, strict=True):
        if label != "topics" or talk.version_of(ApiKey.METADATA) >= 4:
            talk.ask(label, request, by=client)
    limit(talk, {client: {REQUEST: None} for client in clients})


@conversation(ApiKey.SHARE_FETCH)
def sharing_too_much(talk: Talk) -> None:
    group, topic = share_fetch.a_group(talk, ("a",))
    slow = talk.name("slow")
    limit(talk, {slow: {FETCH: SLOW}})
    talk.ask("open", share_fetch.fetch(group, topic), by=slow)
    talk.produce(topic, "x" * TOO_MUCH)
    acks = ((0, 0, share_fetch.ACCEPT),)
    talk.ask("too much", share_fetch.fetch(group, topic, epoch=1, acks=acks), by=slow)
    talk.ask("nothing is left", share_fetch.fetch(group, epoch=2), by=slow)
    limit(talk, {slow: {FETCH: None}})


@conversation(ApiKey.PRODUCE, rounds="13", alone=True)
def whose_quota_it_is(talk: Talk) -> None:
    """The most specific entity that has one; what is not limited there is not limited at all."""
    topic = talk.topic("t")
    much = produce((topic, 0, batch("x" * A_LITTLE_TOO_MUCH)))
    own = [talk.name(f"c{number}") for number in range(8)]
    entities: list[Entity] = [
        {CLIENT: None},
        {CLIENT: own[1]},
        {USER: None},
        {USER: None, CLIENT: None},
        {USER: None, CLIENT: own[4]},
        {USER: ANONYMOUS},
        {USER: ANONYMOUS, CLIENT: None},
        {USER: ANONYMOUS, CLIENT: own[7]},
    ]
    for number, entity in enumerate(entities):
        generous = [entry(other, {PRODUCE: 1e12}) for other in entities[:number]]
        talk.quietly(alter(entry(entity, {PRODUCE: SLOW}), *generous))
        caught_up(talk)
        caught_up(talk)
        talk.ask(f"{number}: its own", much, by=own[number])
        talk.ask(f"{number}: another", much, by=talk.name(f"o{number}"))
    talk.quietly(alter(*[entry(entity, {PRODUCE: None}) for entity in entities]))
    caught_up(talk)
