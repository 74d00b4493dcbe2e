"""OffsetCommit, OffsetFetch and OffsetDelete: how far groups have read."""

from compat.oracle.conversation import conversation
from compat.oracle.conversations.groups import form, join, join_alone, sync
from compat.oracle.grouping import by_topic
from compat.oracle.preparing import NOWHERE, Topic
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from protocol.stored.consumer_protocol import ConsumerProtocolSubscription

BOTH = ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH
NO_GENERATION = -1
STRANGER = "stranger"


def commit(
    group: str,
    *places: tuple[Topic, int, int],
    member: str = "",
    generation: int = NO_GENERATION,
    instance: str | None = None,
    metadata: str | None = "",
    epoch: int = -1,
) -> OffsetCommitRequest:
    """Places are topic, partition and offset."""
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        group_instance_id=instance,
        topics=[
            OffsetCommitRequestTopic(
                name=topic.name,
                topic_id=topic.id,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_leader_epoch=epoch,
                        committed_metadata=metadata,
                    )
                    for index, offset in partitions
                ],
            )
            for topic, partitions in by_topic(places)
        ],
    )


def fetch(
    talk: Talk, *groups: str, places: tuple[tuple[Topic, int], ...] | None = None
) -> OffsetFetchRequest:
    """Until version 7 a request asks for one group.  Without ``places`` it asks for every offset."""
    wanted = [] if places is None else list(by_topic(places))
    if talk.version_of(ApiKey.OFFSET_FETCH) < 8:
        by_name = [
            OffsetFetchRequestTopic(name=topic.name, partition_indexes=[index for (index,) in partitions])
            for topic, partitions in wanted
        ]
        return OffsetFetchRequest(group_id=groups[0], topics=None if places is None else by_name)
    topics = [
        OffsetFetchRequestTopics(
            name=topic.name, topic_id=topic.id, partition_indexes=[index for (index,) in partitions]
        )
        for topic, partitions in wanted
    ]
    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(group_id=group, topics=None if places is None else topics)
            for group in groups
        ]
    )


def delete(group: str, *places: tuple[str, int]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequestPartition(partition_index=index) for (index,) in partitions],
            )
            for name, partitions in by_topic(places)
        ],
    )


@conversation(*BOTH)
def without_members(talk: Talk) -> None:
    group = talk.name("g")
    topic, other = talk.topic("t", 2), talk.topic("u")
    talk.ask("fetch what was never committed", fetch(talk, group, places=((topic, 0),)))
    talk.ask("fetch all of an unknown group", fetch(talk, group))
    talk.ask("commit", commit(group, (topic, 0, 5), (topic, 1, 0), (other, 0, 2**40), epoch=0))
    talk.ask("fetch", fetch(talk, group, places=((topic, 0), (topic, 1), (other, 0))))
    talk.ask("fetch all", fetch(talk, group))
    talk.ask("fetch nothing", fetch(talk, group, places=()))
    talk.ask("commit nothing", commit(group))
    kept = commit(group, (other, 0, 2**40))
    kept.retention_time_ms = 1
    talk.ask("commit for a time", kept)
    talk.ask("commit with metadata", commit(group, (topic, 0, 6), metadata="about it"))
    talk.ask("commit with null metadata", commit(group, (topic, 1, 7), metadata=None))
    talk.ask("commit with too much metadata", commit(group, (other, 0, 8), metadata="x" * 4097))
    talk.ask("commit a negative offset", commit(group, (other, 0, -5)))
    talk.ask("fetch what was changed", fetch(talk, group, places=((topic, 0), (topic, 1), (other, 0))))
    talk.ask("commit to an unknown topic", commit(group, (NOWHERE, 0, 1)))
    talk.ask("commit to a known and an unknown topic", commit(group, (topic, 0, 1), (NOWHERE, 0, 1)))
    twice = commit(group, (NOWHERE, 0, 1), (topic, 0, 1))
    twice.topics += commit(group, (topic, 1, 1), (NOWHERE, 1, 1)).topics
    talk.ask("commit to topics named twice", twice)
    twice = commit(group, (topic, 0, 1))
    twice.topics += commit(group, (topic, 1, 1)).topics
    talk.ask("commit to a topic named twice", twice)
    empty = commit(group, (topic, 0, 1))
    for each in (topic, NOWHERE):
        empty.topics.append(OffsetCommitRequestTopic(name=each.name, topic_id=each.id))
    talk.ask("commit to topics without partitions", empty)
    talk.ask("commit to an unknown partition", commit(group, (topic, 9, 1), (topic, 0, 9)))
    talk.ask("fetch from an unknown topic", fetch(talk, group, places=((NOWHERE, 0), (topic, 0))))
    if talk.version_of(ApiKey.OFFSET_FETCH) < 8:
        named = fetch(talk, group, places=((topic, 0), (NOWHERE, 0)))
        again = fetch(talk, group, places=((topic, 1), (NOWHERE, 1)))
        named.topics = [*(named.topics or ()), *(again.topics or ())]
        talk.ask("fetch from topics named twice", named)
    talk.ask("fetch from an unknown partition", fetch(talk, group, places=((topic, 9),)))
    talk.ask("fetch all in the end", fetch(talk, group))
    stable = fetch(talk, group, places=((topic, 0),))
    stable.require_stable = True
    talk.ask("fetch what is stable", stable)


@conversation(*BOTH)
def groups_of_no_members_refuse(talk: Talk) -> None:
    topic = talk.topic("t")
    unknown = talk.name("unknown")
    talk.ask("a generation of an unknown group", commit(unknown, (topic, 0, 1), generation=3))
    talk.ask("a member of an unknown group", commit(unknown, (topic, 0, 1), member=STRANGER, generation=3))
    talk.ask("the unknown group", fetch(talk, unknown, places=((topic, 0),)))
    group = talk.name("g")
    talk.ask("make a group", commit(group, (topic, 0, 1)))
    talk.ask("a generation", commit(group, (topic, 0, 2), generation=3))
    talk.ask("a member without generation", commit(group, (topic, 0, 3), member=STRANGER))
    talk.ask("an instance without generation", commit(group, (topic, 0, 4), instance="i"))
    talk.ask("what is committed", fetch(talk, group, places=((topic, 0),)))


@conversation(*BOTH)
def as_a_member(talk: Talk) -> None:
    group = talk.name("g")
    topic = talk.topic("t")
    joined = join_alone(talk, "join", join(group))
    member, generation = joined.member_id, joined.generation_id
    place = topic, 0, 5
    talk.ask("before the sync", commit(group, place, member=member, generation=generation))
    talk.ask("sync", sync(group, member, generation))
    talk.ask("commit", commit(group, place, member=member, generation=generation))
    talk.ask("an older generation", commit(group, place, member=member, generation=generation - 1))
    talk.ask("a newer generation", commit(group, place, member=member, generation=generation + 1))
    talk.ask("a stranger", commit(group, place, member=STRANGER, generation=generation))
    talk.ask("nobody", commit(group, place))
    talk.ask("a member without generation", commit(group, place, member=member))
    talk.ask("an unknown instance", commit(group, place, member=member, generation=generation, instance="i"))
    talk.ask("what is committed", fetch(talk, group, places=((topic, 0),)))


@conversation(*BOTH, rounds="7+")
def as_a_static_member(talk: Talk) -> None:
    group = talk.name("g")
    topic = talk.topic("t")
    old = form(talk, group, instance="i")
    generation = old.generation_id
    place = topic, 0, 5
    talk.ask("commit", commit(group, place, member=old.member_id, generation=generation, instance="i"))
    new = talk.ask("another in its place", join(group, instance="i"))
    talk.ask(
        "the one before", commit(group, place, member=old.member_id, generation=generation, instance="i")
    )
    talk.ask(
        "the new one", commit(group, place, member=new.member_id, generation=new.generation_id, instance="i")
    )


@conversation(*BOTH, ApiKey.DESCRIBE_GROUPS, ApiKey.DELETE_GROUPS, alone=True)
def the_group_without_name(talk: Talk) -> None:
    """There is only one, so nobody else may touch it meanwhile."""
    topic = talk.topic("t")
    talk.ask("fetch", fetch(talk, "", places=((topic, 0),)))
    talk.ask("describe", DescribeGroupsRequest(groups=[""]))
    talk.ask("delete offsets", delete("", (topic.name, 0)))
    talk.ask("delete", DeleteGroupsRequest(groups_names=[""]))
    talk.ask("commit", commit("", (topic, 0, 1)))
    talk.ask("fetch what was committed", fetch(talk, "", places=((topic, 0),)))
    talk.ask("describe it now", DescribeGroupsRequest(groups=[""]))
    talk.ask("delete it now", DeleteGroupsRequest(groups_names=[""]))
    talk.ask("fetch all in the end", fetch(talk, ""))


@conversation(ApiKey.OFFSET_FETCH, rounds="8+")
def several_groups(talk: Talk) -> None:
    topic = talk.topic("t")
    first, second = talk.name("g"), talk.name("h")
    talk.ask("commit of the first", commit(first, (topic, 0, 1)))
    talk.ask("commit of the second", commit(second, (topic, 0, 2)))
    talk.ask("of both", fetch(talk, second, first, talk.name("unknown"), places=((topic, 0),)))
    talk.ask("all of both", fetch(talk, first, second))
    talk.ask("of the same twice", fetch(talk, first, first, places=((topic, 0),)))
    talk.ask("of none", OffsetFetchRequest())
    twice = fetch(talk, first, places=((topic, 0), (NOWHERE, 0)))
    more = fetch(talk, first, places=((topic, 0), (NOWHERE, 1))).groups[0].topics
    assert twice.groups[0].topics is not None
    twice.groups[0].topics += more or []
    talk.ask("of topics named twice", twice)
    empty = fetch(talk, first, places=((topic, 0),))
    for each in (topic, NOWHERE):
        assert empty.groups[0].topics is not None
        empty.groups[0].topics.append(OffsetFetchRequestTopics(name=each.name, topic_id=each.id))
    talk.ask("of topics without partitions", empty)


@conversation(ApiKey.OFFSET_FETCH, rounds="9+")
def fetching_as_a_member(talk: Talk) -> None:
    """Member id and epoch are of the new protocol; classic groups do not look at them."""
    topic = talk.topic("t")
    group = talk.name("g")
    talk.ask("commit", commit(group, (topic, 0, 1)))
    request = fetch(talk, group, places=((topic, 0),))
    request.groups[0].member_id = STRANGER
    request.groups[0].member_epoch = 5
    talk.ask("as a stranger", request)


@conversation(*BOTH)
def offsets_of_a_deleted_topic(talk: Talk) -> None:
    group = talk.name("g")
    topic, other = talk.topic("t"), talk.topic("u")
    talk.ask("commit", commit(group, (topic, 0, 5), (other, 0, 6)))
    talk.delete_topic(topic)
    talk.until(
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)]),
        lambda answer: len(answer.groups[0].topics) == 1,
    )
    talk.ask("fetch all", fetch(talk, group))
    talk.ask("fetch what is gone", fetch(talk, group, places=((topic, 0),)))
    anew = talk.topic("t")
    talk.ask("fetch from the topic made anew", fetch(talk, group, places=((anew, 0),)))
    talk.ask("commit to what is gone", commit(group, (topic, 0, 7)))


@conversation(ApiKey.OFFSET_DELETE)
def deleting(talk: Talk) -> None:
    group = talk.name("g")
    topic, other = talk.topic("t", 2), talk.topic("u")
    talk.ask("in an unknown group", delete(group, (topic.name, 0)))
    talk.ask("commit", commit(group, (topic, 0, 5), (topic, 1, 6), (other, 0, 7)))
    talk.ask("one", delete(group, (topic.name, 0)))
    talk.ask("the same again", delete(group, (topic.name, 0)))
    talk.ask("of an unknown topic", delete(group, (NOWHERE.name, 0), (topic.name, 9)))
    talk.ask("nothing", delete(group))
    twice = delete(group, (topic.name, 0), (NOWHERE.name, 0))
    twice.topics += delete(group, (topic.name, 0), (NOWHERE.name, 1)).topics
    talk.ask("of topics named twice", twice)
    twice = delete(group, (topic.name, 0))
    twice.topics += delete(group, (topic.name, 0)).topics
    talk.ask("of a topic named twice", twice)
    empty = delete(group, (topic.name, 0))
    empty.topics += [OffsetDeleteRequestTopic(name=name) for name in (topic.name, NOWHERE.name)]
    talk.ask("of topics without partitions", empty)
    talk.ask("what is left", fetch(talk, group))
    talk.ask("the rest", delete(group, (topic.name, 1), (other.name, 0)))
    talk.ask("nothing is left", fetch(talk, group))


@conversation(ApiKey.OFFSET_DELETE)
def deleting_what_is_read(talk: Talk) -> None:
    group = talk.name("g")
    topic, other = talk.topic("t"), talk.topic("u")
    talk.ask("commit", commit(group, (topic, 0, 5), (other, 0, 6)))
    request = join(group)
    request.protocols[0].metadata = b"\0\1" + ConsumerProtocolSubscription(topics=[topic.name]).encode(1)
    joined = join_alone(talk, "join", request)
    talk.ask("sync", sync(group, joined.member_id, joined.generation_id))
    talk.ask("of a topic that is read, and one that is not", delete(group, (topic.name, 0), (other.name, 0)))
    talk.ask("what is left", fetch(talk, group))
    connect = talk.name("connect")
    talk.ask("join as something else", join(connect, kind="connect"), version=3)
    talk.ask("in a group of something else", delete(connect, (topic.name, 0)))
