"""Groups that change their protocol while they work, and the members of both protocols in them (KIP-848)."""

from typing import Any

from compat.oracle.conversation import conversation
from compat.oracle.conversations import groups as classic
from compat.oracle.conversations.consumer_groups import (
    FIRST,
    SECOND,
    THIRD,
    at_once,
    beat,
    describe,
    join,
    leave,
)
from compat.oracle.conversations.groups import MEMBERSHIP, SINCE_STATIC_MEMBERS, heartbeat, sync
from compat.oracle.conversations.offsets import commit, fetch
from compat.oracle.preparing import Topic
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.sync_group import SyncGroupRequestAssignment
from protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)

BEAT = ApiKey.CONSUMER_GROUP_HEARTBEAT
OLD, OTHER = "old", "other"
"""Clients of the classic protocol."""


def subscription(*topics: Topic, owned: tuple[tuple[Topic, list[int]], ...] = (), version: int = 1) -> bytes:
    """What a consumer of the classic protocol says of itself."""
    said = ConsumerProtocolSubscription(
        topics=[topic.name for topic in topics],
        owned_partitions=[
            ConsumerProtocolSubscriptionTopicPartition(topic=topic.name, partitions=partitions)
            for topic, partitions in owned
        ],
    )
    return version.to_bytes(2, "big") + bytes(said.encode(version))


def assignment(*owned: tuple[Topic, list[int]], user_data: bytes | None = None, version: int = 1) -> bytes:
    """What a leader gives a consumer of the classic protocol."""
    said = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(topic=topic.name, partitions=partitions)
            for topic, partitions in owned
        ],
        user_data=user_data,
    )
    return version.to_bytes(2, "big") + bytes(said.encode(version))


def old_join(
    group: str, metadata: bytes, member: str = "", *, names: tuple[str, ...] = ("range",), **how: Any
) -> JoinGroupRequest:
    """JoinGroup of a consumer."""
    request = classic.join(group, member, **how)
    request.protocols = [JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names]
    return request


def form(talk: Talk, group: str, metadata: bytes, assigned: bytes, **how: Any) -> Any:
    """A stable classic group of one consumer: what it was told when it joined."""
    joined = classic.join_alone(talk, "the old one joins", old_join(group, metadata, **how), by=OLD)
    request = sync(group, joined.member_id, joined.generation_id, instance=how.get("instance"))
    request.assignments = [SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assigned)]
    talk.ask("the old one syncs", request, by=OLD)
    return joined


@conversation(*MEMBERSHIP)
def an_old_member_in_a_new_group(talk: Talk) -> None:
    topic = talk.topic("t", 4)
    group = at_once(talk)
    talk.ask("the first joins", join(group, FIRST, topic))
    metadata = subscription(topic)
    other = talk.ask("another joins without id", old_join(group, metadata), by=OTHER)
    talk.ask("it leaves", classic.leave(talk, group, other.member_id), by=OTHER)
    old = talk.ask("the old one joins", old_join(group, metadata, OLD), by=OLD)
    member, generation = old.member_id, old.generation_id
    talk.ask("it syncs", sync(group, member, generation), by=OLD)
    talk.ask("its heartbeat", heartbeat(group, member, generation), by=OLD)
    talk.ask("its heartbeat of an older generation", heartbeat(group, member, generation - 1), by=OLD)
    talk.ask("its heartbeat of a newer generation", heartbeat(group, member, generation + 1), by=OLD)
    talk.ask("heartbeat of a stranger", heartbeat(group, "stranger", generation), by=OLD)
    talk.ask("heartbeat of a new one in the old way", heartbeat(group, FIRST, 2))
    talk.ask("sync of a new one in the old way", sync(group, FIRST, 2))
    talk.ask("sync with another protocol", sync(group, member, generation, protocol="sticky"), by=OLD)
    talk.ask("sync with another type", sync(group, member, generation, kind="connect"), by=OLD)
    talk.ask("sync of an older generation", sync(group, member, generation - 1), by=OLD)
    talk.ask("the first hears of it", beat(group, FIRST, 2))
    talk.ask("the first gives up", beat(group, FIRST, 2, owned=[(topic, [0, 1])]))
    talk.ask("the heartbeat of the old one, when it may go on", heartbeat(group, member, generation), by=OLD)
    again = old_join(group, metadata, member)
    joined = talk.ask("the old one joins again", again, by=OLD)
    talk.ask("it syncs again", sync(group, member, joined.generation_id), by=OLD)
    talk.ask("its heartbeat again", heartbeat(group, member, joined.generation_id), by=OLD)
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.ask("describe as a classic group", DescribeGroupsRequest(groups=[group]))
    talk.ask("commit of the old one", commit(group, (topic, 2, 7), member=member, generation=3), by=OLD)
    talk.ask("commit of generation 9", commit(group, (topic, 2, 7), member=member, generation=9), by=OLD)
    talk.ask("a third joins", join(group, THIRD, topic), by=THIRD)
    talk.ask("the heartbeat of the old one, when it must give up", heartbeat(group, member, 3), by=OLD)
    talk.ask("a stranger leaves", classic.leave(talk, group, "stranger"), by=OLD)
    talk.ask("the old one leaves", classic.leave(talk, group, member), by=OLD)
    talk.ask("its heartbeat after leaving", heartbeat(group, member, 3), by=OLD)
    talk.settle_groups()
    talk.ask("describe who is left", describe(group))


@conversation(ApiKey.JOIN_GROUP)
def joining_in_the_old_way(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    group = at_once(talk)
    talk.ask("the first joins", join(group, FIRST, topic))
    talk.ask("another type", old_join(group, b"", kind="connect"), by=OLD)
    talk.ask("no protocols", old_join(group, b"", "stranger", names=()), by=OLD)
    talk.ask("metadata that cannot be read", old_join(group, b"about me", "stranger"), by=OLD)
    talk.ask("no metadata", old_join(group, b"", "stranger"), by=OLD)
    metadata = subscription(topic)
    talk.ask("a stranger", old_join(group, metadata, "stranger", names=("range", "sticky")), by=OLD)
    talk.ask("other protocols", old_join(group, metadata, "stranger 2", names=("roundrobin",)), by=OTHER)
    talk.ask("some of its protocols", old_join(group, metadata, "stranger 2", names=("sticky",)), by=OTHER)
    talk.ask("one too many", old_join(group, metadata, "stranger 3"), by="third")
    talk.ask("the first in the old way", old_join(group, metadata, FIRST, names=("sticky",)))
    talk.settle_groups()
    talk.ask("describe", describe(group))


@conversation(*MEMBERSHIP, rounds=SINCE_STATIC_MEMBERS)
def an_old_static_member_in_a_new_group(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    group = at_once(talk)
    talk.ask("the first joins", join(group, FIRST, topic))
    metadata = subscription(topic)
    old = talk.ask("the old one joins", old_join(group, metadata, instance="i"), by=OLD)
    member, generation = old.member_id, old.generation_id
    talk.ask("it syncs", sync(group, member, generation, instance="i"), by=OLD)
    talk.ask("its heartbeat", heartbeat(group, member, generation, "i"), by=OLD)
    talk.ask("heartbeat of another id", heartbeat(group, "stranger", generation, "i"), by=OLD)
    talk.ask("heartbeat under another name", heartbeat(group, member, generation, "j"), by=OLD)
    talk.ask("another id joins under its name", old_join(group, metadata, "stranger", instance="i"), by=OLD)
    heir = talk.ask("it comes back without id", old_join(group, metadata, instance="i"), by=OLD)
    talk.ask("heartbeat of the old id", heartbeat(group, member, generation, "i"), by=OLD)
    talk.ask("heartbeat of the new id", heartbeat(group, heir.member_id, generation, "i"), by=OLD)
    talk.ask("the operator removes somebody", classic.leave(talk, group, "", instance="j"))
    talk.ask("the operator removes it", classic.leave(talk, group, "", instance="i"))
    talk.ask("heartbeat when it is removed", heartbeat(group, heir.member_id, generation, "i"), by=OLD)


@conversation(*MEMBERSHIP, BEAT)
def from_old_to_new_and_back(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    group = at_once(talk)
    old = form(talk, group, subscription(topic), assignment((topic, [0, 1])))
    member = old.member_id
    talk.ask("commit", commit(group, (topic, 0, 5), member=member, generation=1), by=OLD)
    talk.ask("a new one joins", join(group, FIRST, topic))
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.ask("the heartbeat of the old one", heartbeat(group, member, 1), by=OLD)
    owning = subscription(topic, owned=((topic, [0, 1]),))
    talk.ask("the old one joins again", old_join(group, owning, member), by=OLD)
    talk.ask("it syncs", sync(group, member, 1), by=OLD)
    talk.ask("its heartbeat while it must give up", heartbeat(group, member, 1), by=OLD)
    giving = subscription(topic, owned=((topic, [0]),))
    joined = talk.ask("it gives up", old_join(group, giving, member), by=OLD)
    talk.ask("it syncs again", sync(group, member, joined.generation_id), by=OLD)
    talk.ask("the new one asks", beat(group, FIRST, 2))
    talk.settle_groups()
    talk.ask("describe both", describe(group))
    talk.ask("the offsets are there", fetch(talk, group))
    talk.ask("the new one leaves", leave(group, FIRST))
    talk.ask("the new one asks a classic group", beat(group, FIRST, 2))
    talk.settle_groups()
    talk.ask("it is a classic group again", describe(group))
    talk.ask("describe as a classic group", DescribeGroupsRequest(groups=[group]))
    talk.ask("the old one hears of it", heartbeat(group, member, 3), by=OLD)
    back = talk.ask("the old one joins once more", old_join(group, owning, member), by=OLD)
    request = sync(group, member, back.generation_id)
    request.assignments = [
        SyncGroupRequestAssignment(member_id=member, assignment=assignment((topic, [0, 1])))
    ]
    talk.ask("and leads", request, by=OLD)
    talk.settle_groups()
    talk.ask("describe a stable classic group", DescribeGroupsRequest(groups=[group]))
    talk.ask("the old one leaves", classic.leave(talk, group, member), by=OLD)


@conversation(ApiKey.JOIN_GROUP, rounds=SINCE_STATIC_MEMBERS)
def a_new_static_member_that_comes_back_old(talk: Talk) -> None:
    """It was the last that spoke the new protocol, so its group goes back to the old one."""
    topic = talk.topic("t", 2)
    group = at_once(talk)
    talk.ask("join", join(group, FIRST, topic, instance="i"))
    talk.ask("go for a while", leave(group, FIRST, instance="i", epoch=-2))
    joined = talk.ask("come back", old_join(group, subscription(topic), instance="i"), by=OLD)
    talk.settle_groups()
    talk.ask("describe", DescribeGroupsRequest(groups=[group]))
    talk.ask("sync", sync(group, joined.member_id, joined.generation_id, instance="i"), by=OLD)
    talk.ask("heartbeat", heartbeat(group, joined.member_id, joined.generation_id, "i"), by=OLD)


@conversation(BEAT)
def groups_that_cannot_change(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    connect = at_once(talk, "connect")
    classic.form(talk, connect, kind="connect")
    talk.ask("a group of another type", join(connect, FIRST, topic))
    talk.ask("heartbeat in it", beat(connect, FIRST, 2))
    talk.ask("leave it", leave(connect, FIRST))
    talk.ask("describe it", describe(connect))


@conversation(BEAT)
def a_group_whose_metadata_cannot_be_read(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    group = at_once(talk)
    form(talk, group, b"about me", b"")
    talk.ask("join", join(group, FIRST, topic))
    talk.settle_groups()
    talk.ask("it stays as it is", DescribeGroupsRequest(groups=[group]))


@conversation(BEAT)
def a_group_whose_assignment_cannot_be_read(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    group = at_once(talk)
    form(talk, group, subscription(topic), b"what I give you")
    talk.ask("join", join(group, FIRST, topic))


@conversation(BEAT)
def a_group_with_an_assignor_of_its_own(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    group = at_once(talk)
    form(talk, group, subscription(topic), assignment((topic, [0]), user_data=b"mine"))
    talk.ask("join", join(group, FIRST, topic))


@conversation(BEAT, ApiKey.JOIN_GROUP)
def empty_groups_are_of_the_kind_of_their_first_member(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    group = at_once(talk)
    talk.ask("commit as nobody", commit(group, (topic, 0, 5)))
    talk.ask("a new one joins a simple group", join(group, FIRST, topic))
    talk.settle_groups()
    talk.ask("list it", ListGroupsRequest())
    talk.ask("its offset", fetch(talk, group))
    talk.ask("the new one leaves", leave(group, FIRST))
    talk.ask("an id that was never handed out", old_join(group, subscription(topic), "stranger"), by=OLD)
    joined = classic.join_alone(talk, "an old one joins", old_join(group, subscription(topic)), by=OLD)
    talk.settle_groups()
    talk.ask("list it again", ListGroupsRequest())
    talk.ask("the old one leaves", classic.leave(talk, group, joined.member_id), by=OLD)
    talk.ask("a new one joins a classic group", join(group, SECOND, topic), by=SECOND)
    talk.settle_groups()
    talk.ask("list it at last", ListGroupsRequest())
    talk.ask("its offset at last", fetch(talk, group))


@conversation(ApiKey.JOIN_GROUP, BEAT)
def a_stranger_at_an_empty_group(talk: Talk) -> None:
    topic, group = talk.topic("t"), at_once(talk)
    talk.ask("a member", join(group, FIRST, topic))
    talk.ask("it leaves", leave(group, FIRST))
    talk.ask("a stranger joins", classic.join(group, classic.STRANGER))
    talk.settle_groups()
    talk.ask("the group", describe(group))
    talk.ask("another member", join(group, SECOND, topic))
