"""Offsets and operators of consumer groups (KIP-848): what members and others may do with them."""

from typing import Any

from compat.oracle.conversation import conversation
from compat.oracle.conversations import offsets, transactional_offsets
from compat.oracle.conversations.consumer_groups import FIRST, SECOND, at_once, beat, join, leave
from compat.oracle.conversations.offsets import commit, fetch
from compat.oracle.conversations.transactional_offsets import open_for
from compat.oracle.conversations.transactions import COMMIT, begin, end, until_at_rest
from compat.oracle.preparing import Topic
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.offset_fetch import OffsetFetchRequest
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

SINCE_MEMBERS_FETCH = "9+"
STRANGER = "stranger"


def fetch_as(
    talk: Talk, group: str, member: str | None, epoch: int, topic: Topic, partition: int = 0
) -> OffsetFetchRequest:
    request = fetch(talk, group, places=((topic, partition),))
    for asked in request.groups:
        asked.member_id, asked.member_epoch = member, epoch
    return request


@conversation(ApiKey.OFFSET_COMMIT)
def committing_as_a_member(talk: Talk) -> None:
    topic, other = talk.topic("t", 4), talk.topic("u", 1)
    group = at_once(talk)
    talk.ask("join", join(group, FIRST, topic))
    talk.ask("as a member", commit(group, (topic, 0, 5), member=FIRST, generation=2))
    talk.ask("what it does not read", commit(group, (other, 0, 5), member=FIRST, generation=2))
    talk.ask("of a newer epoch", commit(group, (topic, 0, 6), member=FIRST, generation=3))
    talk.ask("of an older epoch", commit(group, (topic, 0, 6), member=FIRST, generation=1))
    talk.ask("of no epoch", commit(group, (topic, 0, 6), member=FIRST))
    talk.ask("of epoch 0", commit(group, (topic, 0, 6), member=FIRST, generation=0))
    talk.ask("as a stranger", commit(group, (topic, 0, 6), member=STRANGER, generation=2))
    talk.ask("as nobody", commit(group, (topic, 0, 6)))
    talk.ask("another joins", join(group, SECOND, topic), by=SECOND)
    talk.ask("it hears of it", beat(group, FIRST, 2))
    talk.ask("what it has to give up", commit(group, (topic, 3, 7), member=FIRST, generation=2))
    talk.ask("it gives up", beat(group, FIRST, 2, owned=[(topic, [0, 1])]))
    # It has not heard of epoch 3: what it had before, it may still commit (KIP-1251).
    talk.ask("what it kept, of the last epoch", commit(group, (topic, 0, 8), member=FIRST, generation=2))
    talk.ask("what it gave up, of the last epoch", commit(group, (topic, 3, 8), member=FIRST, generation=2))
    both = commit(group, (topic, 0, 9), (topic, 3, 9), member=FIRST, generation=2)
    talk.ask("both, of the last epoch", both)
    long = commit(group, (topic, 3, 9), member=FIRST, generation=2, metadata="x" * 5000)
    talk.ask("too much metadata for what it gave up", long)
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
    talk.ask("join", join(group, FIRST, topic, instance="i"))
    talk.ask("commit", commit(group, (topic, 0, 5), member=FIRST, generation=2, instance="i"))
    talk.ask("go for a while", leave(group, FIRST, instance="i", epoch=-2))
    talk.ask("commit when gone", commit(group, (topic, 0, 6), member=FIRST, generation=2, instance="i"))
    talk.ask("commit of epoch -2", commit(group, (topic, 0, 6), member=FIRST, generation=-2, instance="i"))
    talk.ask("come back", join(group, SECOND, topic, instance="i"), by=SECOND)
    talk.ask("commit of the old id", commit(group, (topic, 0, 7), member=FIRST, generation=2, instance="i"))
    talk.ask("commit of the new id", commit(group, (topic, 0, 8), member=SECOND, generation=2, instance="i"))


@conversation(ApiKey.TXN_OFFSET_COMMIT)
def committing_in_a_transaction(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    group = at_once(talk)
    talk.ask("join", join(group, FIRST, topic))
    writer = begin(talk)
    open_for(talk, writer, group)

    def committed(offset: int, **member: Any) -> TxnOffsetCommitRequest:
        return transactional_offsets.commit(writer, group, (topic, 0, offset), **member)

    talk.ask("as a member", committed(5, member=FIRST, generation=2))
    talk.ask("of a newer epoch", committed(6, member=FIRST, generation=3))
    talk.ask("of an older epoch", committed(6, member=FIRST, generation=1))
    talk.ask("of no epoch", committed(6, member=FIRST))
    talk.ask("as a stranger", committed(6, member=STRANGER, generation=2))
    talk.ask("as a stranger of no epoch", committed(6, member=STRANGER))
    talk.ask("as nobody", committed(7))
    talk.ask("as nobody, of an epoch", committed(8, generation=2))
    talk.ask("another joins", join(group, SECOND, topic), by=SECOND)
    talk.ask("it hears of it", beat(group, FIRST, 2))
    talk.ask("what it kept, of the last epoch", committed(9, member=FIRST, generation=2))
    talk.ask("it gives up", beat(group, FIRST, 2, owned=[(topic, [0])]))
    talk.ask("what it kept, when it has given up", committed(10, member=FIRST, generation=2))
    given_up = transactional_offsets.commit(writer, group, (topic, 1, 10), member=FIRST, generation=2)
    talk.ask("what it gave up, of the last epoch", given_up)
    talk.quietly(end(writer, COMMIT), version=4)
    until_at_rest(talk, writer)
    talk.ask("what came of it", fetch(talk, group))


@conversation(ApiKey.OFFSET_FETCH, rounds=SINCE_MEMBERS_FETCH)
def fetching_as_a_member(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    group = at_once(talk)
    talk.ask("join", join(group, FIRST, topic))
    talk.ask("commit", commit(group, (topic, 0, 5), member=FIRST, generation=2))
    talk.ask("as a member", fetch_as(talk, group, FIRST, 2, topic))
    talk.ask("of a newer epoch", fetch_as(talk, group, FIRST, 3, topic))
    talk.ask("of an older epoch", fetch_as(talk, group, FIRST, 1, topic))
    talk.ask("of no epoch", fetch_as(talk, group, FIRST, -1, topic))
    talk.ask("as a stranger", fetch_as(talk, group, STRANGER, 2, topic))
    talk.ask("as nobody", fetch_as(talk, group, None, -1, topic))
    talk.ask("as nobody with an epoch", fetch_as(talk, group, None, 2, topic))
    talk.ask("with an empty id", fetch_as(talk, group, "", -1, topic))
    talk.ask("of an unknown group", fetch_as(talk, talk.name("h"), FIRST, 2, topic))
    talk.ask("what was never committed", fetch_as(talk, group, FIRST, 2, topic, 1))


@conversation(ApiKey.OFFSET_DELETE, ApiKey.OFFSET_FETCH)
def deleting_offsets(talk: Talk) -> None:
    topic, other = talk.topic("t", 1), talk.topic("u", 1)
    group = at_once(talk)
    talk.ask("join", join(group, FIRST, topic))
    talk.ask("commit", commit(group, (topic, 0, 5), (other, 0, 6), member=FIRST, generation=2))
    talk.ask("of a topic that is read", offsets.delete(group, (topic.name, 0)))
    talk.ask("of a topic that is not", offsets.delete(group, (other.name, 0)))
    talk.ask("of both", offsets.delete(group, (other.name, 0), (topic.name, 0)))
    talk.ask("what is left", fetch(talk, group))
    talk.ask("leave", leave(group, FIRST))
    talk.ask("of a topic that was read", offsets.delete(group, (topic.name, 0)))
    talk.ask("whether nothing is left", fetch(talk, group))


@conversation(ApiKey.DELETE_GROUPS)
def deleting_groups(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    group = at_once(talk)
    talk.ask("join", join(group, FIRST, topic))
    talk.ask("commit", commit(group, (topic, 0, 5), member=FIRST, generation=2))
    talk.ask("one with a member", DeleteGroupsRequest(groups_names=[group]))
    talk.ask("leave", leave(group, FIRST))
    talk.ask("one without", DeleteGroupsRequest(groups_names=[group]))
    talk.ask("what is left of it", fetch(talk, group))
    talk.ask("once more", DeleteGroupsRequest(groups_names=[group]))
    talk.ask("join anew", join(group, FIRST, topic))


@conversation(ApiKey.DESCRIBE_GROUPS)
def describing_as_a_classic_group(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    group = at_once(talk)
    talk.ask("join", join(group, FIRST, topic))
    talk.settle_groups()
    talk.ask("one with a member", DescribeGroupsRequest(groups=[group], include_authorized_operations=False))
    talk.ask("leave", leave(group, FIRST))
    talk.settle_groups()
    talk.ask("one without", DescribeGroupsRequest(groups=[group]))


@conversation(ApiKey.LIST_GROUPS)
def listing(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    stable, empty = at_once(talk, "stable"), at_once(talk, "empty")
    moving, assigning = at_once(talk, "moving"), talk.name("assigning")
    talk.ask("join the stable one", join(stable, FIRST, topic))
    talk.ask("join the empty one", join(empty, FIRST, topic))
    talk.ask("leave the empty one", leave(empty, FIRST))
    talk.ask("join the moving one", join(moving, FIRST, topic))
    talk.ask("join the moving one, too", join(moving, SECOND, topic))
    talk.ask("go away for a while", join(assigning, FIRST, topic, instance="i"))
    talk.ask("commit", commit(talk.name("simple"), (topic, 0, 1)))
    talk.settle_groups()
    talk.ask("all", ListGroupsRequest())
    talk.ask("of the consumer type", ListGroupsRequest(types_filter=["Consumer"]))
    talk.ask("of the classic type", ListGroupsRequest(types_filter=["classic"]))
    talk.ask("stable ones", ListGroupsRequest(states_filter=["Stable"]))
    talk.ask("empty ones", ListGroupsRequest(states_filter=["empty"]))
    talk.ask("reconciling ones", ListGroupsRequest(states_filter=["RECONCILING"]))
    talk.ask("assigning ones", ListGroupsRequest(states_filter=["Assigning"], types_filter=["consumer"]))
    talk.ask("of both types", ListGroupsRequest(types_filter=["consumer", "classic"]))
