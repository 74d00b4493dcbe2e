"""TxnOffsetCommit, and what OffsetFetch shows of it before and after the end (KIP-98, KIP-447)."""

from typing import Any

from compat.oracle.conversation import conversation
from compat.oracle.conversations.groups import form, join, join_alone
from compat.oracle.conversations.offsets import commit as commit_outside
from compat.oracle.conversations.offsets import delete, fetch
from compat.oracle.conversations.transactions import (
    ABORT,
    COMMIT,
    Writer,
    begin,
    describe,
    end,
    stick,
    until_at_rest,
)
from compat.oracle.grouping import by_topic
from compat.oracle.preparing import NOWHERE, Topic
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

COMMITTING = ApiKey.TXN_OFFSET_COMMIT
STRANGER = "stranger"


def commit(
    writer: Writer,
    group: str,
    *places: tuple[Topic, int, int],
    member: str = "",
    generation: int = -1,
    instance: str | None = None,
    metadata: str | None = "",
    epoch: int = -1,
) -> TxnOffsetCommitRequest:
    """Places are topic, partition and offset."""
    return TxnOffsetCommitRequest(
        transactional_id=writer.id,
        group_id=group,
        producer_id=writer.producer_id,
        producer_epoch=writer.epoch,
        generation_id_or_member_epoch=generation,
        member_id=member,
        group_instance_id=instance,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=topic.name,
                topic_id=topic.id,
                partitions=[
                    TxnOffsetCommitRequestPartition(
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


def open_for(talk: Talk, writer: Writer, group: str) -> None:
    """Announce the group's offsets without telling of it."""
    until_at_rest(talk, writer)
    request = AddOffsetsToTxnRequest(
        transactional_id=writer.id,
        producer_id=writer.producer_id,
        producer_epoch=writer.epoch,
        group_id=group,
    )
    answer = talk.quietly(request)
    assert not answer.error_code, answer


def stable(talk: Talk, group: str, *places: tuple[Topic, int]) -> Any:
    request = fetch(talk, group, places=places or None)
    request.require_stable = True
    return request


@conversation(COMMITTING, alone=True)
def offsets_that_were_not_announced(talk: Talk) -> None:
    topic = talk.topic("t")
    group = talk.name("g")
    writer = begin(talk)
    unknown = writer._replace(id=talk.name("unknown"))
    talk.ask("commit of an unknown id", commit(unknown, group, (topic, 0, 5)))
    talk.ask("commit of no id", commit(writer._replace(id=""), group, (topic, 0, 5)))
    talk.ask("commit", commit(writer, group, (topic, 0, 5)))
    talk.ask("what is open", describe(writer))
    talk.ask("commit of an unknown id after that", commit(unknown, group, (topic, 0, 5)))


@conversation(COMMITTING, ApiKey.OFFSET_FETCH)
def offsets_in_a_transaction(talk: Talk) -> None:
    topic, other = talk.topic("t", 3), talk.topic("u")
    group = talk.name("g")
    writer = begin(talk)
    open_for(talk, writer, group)
    talk.ask("commit", commit(writer, group, (topic, 0, 5), (other, 0, 7), metadata="m", epoch=0))
    talk.ask("commit another", commit(writer, group, (topic, 1, 6), metadata=None))
    talk.ask("commit one again", commit(writer, group, (topic, 0, 8)))
    talk.ask("commit nothing", commit(writer, group))
    talk.ask("commit with too much metadata", commit(writer, group, (topic, 2, 1), metadata="x" * 4097))
    talk.ask("commit to an unknown topic", commit(writer, group, (NOWHERE, 0, 1)))
    talk.ask(
        "commit to known and unknown ones",
        commit(writer, group, (NOWHERE, 0, 1), (topic, 9, 1), (topic, 2, 3)),
    )
    talk.ask("commit for no group", commit(writer, "", (topic, 0, 1)))
    older = writer._replace(epoch=-1)
    talk.ask("commit with an older epoch", commit(older, group, (topic, 0, 1)))
    talk.ask("commit with a newer epoch", commit(writer._replace(epoch=1), group, (topic, 0, 1)))
    wrong = writer._replace(producer_id=writer.producer_id + 9)
    talk.ask("commit with a wrong producer id", commit(wrong, group, (topic, 0, 1)))
    talk.ask("fetch", fetch(talk, group, places=((topic, 0), (topic, 1), (other, 0))))
    talk.ask("fetch all", fetch(talk, group))
    if talk.version_of(ApiKey.OFFSET_FETCH) >= 7:
        talk.ask("fetch what is stable", stable(talk, group, (topic, 0), (topic, 2), (other, 0)))
        talk.ask("fetch all that is stable", stable(talk, group))
    talk.quietly(end(writer, COMMIT), version=4)
    until_at_rest(talk, writer)
    talk.ask("fetch after the commit", fetch(talk, group, places=((topic, 0), (topic, 1), (other, 0))))
    talk.ask("fetch all after the commit", fetch(talk, group))
    if talk.version_of(ApiKey.OFFSET_FETCH) >= 7:
        talk.ask("fetch all that is stable after the commit", stable(talk, group))


@conversation(ApiKey.OFFSET_FETCH, rounds="7+")
def offsets_that_are_aborted(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    group = talk.name("g")
    writer = begin(talk)
    talk.quietly(commit_outside(group, (topic, 0, 3)))
    open_for(talk, writer, group)
    talk.quietly(commit(writer, group, (topic, 0, 5), (topic, 1, 6)))
    talk.ask("fetch while it is open", fetch(talk, group, places=((topic, 0), (topic, 1))))
    talk.ask("fetch what is stable while it is open", stable(talk, group, (topic, 0), (topic, 1)))
    talk.ask("fetch all that is stable while it is open", stable(talk, group))
    talk.quietly(end(writer, ABORT), version=4)
    until_at_rest(talk, writer)
    talk.ask("fetch after the abort", stable(talk, group, (topic, 0), (topic, 1)))


@conversation(ApiKey.OFFSET_FETCH, rounds="7+")
def offsets_from_two_sides(talk: Talk) -> None:
    """A commit outside the transaction that comes later counts, whatever the transaction comes to."""
    topic = talk.topic("t", 3)
    group = talk.name("g")
    writer, other = begin(talk), begin(talk, "y")
    for each in (writer, other):
        open_for(talk, each, group)
    talk.quietly(commit(writer, group, (topic, 0, 5), (topic, 1, 6)))
    talk.quietly(commit_outside(group, (topic, 0, 10)))
    talk.quietly(commit(other, group, (topic, 1, 20), (topic, 2, 21)))
    talk.ask("fetch while both are open", fetch(talk, group))
    talk.ask("fetch what is stable while both are open", stable(talk, group, (topic, 0), (topic, 1)))
    talk.quietly(end(other, COMMIT), version=4)
    until_at_rest(talk, other)
    talk.ask("fetch what is stable after one", stable(talk, group, (topic, 0), (topic, 1), (topic, 2)))
    talk.quietly(end(writer, COMMIT), version=4)
    until_at_rest(talk, writer)
    talk.ask("fetch what is stable after both", stable(talk, group))


@conversation(COMMITTING)
def committing_without_members(talk: Talk) -> None:
    topic = talk.topic("t")
    group = talk.name("g")
    writer = begin(talk)
    open_for(talk, writer, group)
    if talk.version_of(COMMITTING) >= 3:
        talk.ask("a generation", commit(writer, group, (topic, 0, 1), generation=3))
        talk.ask("a member", commit(writer, group, (topic, 0, 1), member=STRANGER))
        talk.ask(
            "a member with a generation", commit(writer, group, (topic, 0, 1), member=STRANGER, generation=3)
        )
        talk.ask("an instance", commit(writer, group, (topic, 0, 1), instance="i"))
    talk.ask("nobody", commit(writer, group, (topic, 0, 1)))
    if talk.version_of(COMMITTING) >= 3:
        talk.ask("a generation after that", commit(writer, group, (topic, 0, 1), generation=3))
    talk.ask("the group", DescribeGroupsRequest(groups=[group]))


@conversation(COMMITTING)
def committing_as_a_member(talk: Talk) -> None:
    topic = talk.topic("t")
    group = talk.name("g")
    writer = begin(talk)
    open_for(talk, writer, group)
    joined = join_alone(talk, "join", join(group))
    member, generation = joined.member_id, joined.generation_id
    place = topic, 0, 5
    talk.ask("nobody, before the sync", commit(writer, group, place))
    if talk.version_of(COMMITTING) >= 3:
        known = {"member": member, "generation": generation}
        talk.ask("before the sync", commit(writer, group, place, **known))
        talk.ask(
            "an older generation", commit(writer, group, place, member=member, generation=generation - 1)
        )
        talk.ask("a newer generation", commit(writer, group, place, member=member, generation=generation + 1))
        talk.ask("a stranger", commit(writer, group, place, member=STRANGER, generation=generation))
        talk.ask("a member without generation", commit(writer, group, place, member=member))
        talk.ask("a generation without member", commit(writer, group, place, generation=generation))
        talk.ask("an unknown instance", commit(writer, group, place, instance="i", **known))


@conversation(COMMITTING, rounds="3+")
def committing_as_a_static_member(talk: Talk) -> None:
    topic = talk.topic("t")
    group = talk.name("g")
    writer = begin(talk)
    open_for(talk, writer, group)
    old = form(talk, group, instance="i")
    known = {"generation": old.generation_id, "instance": "i"}
    place = topic, 0, 5
    talk.ask("commit", commit(writer, group, place, member=old.member_id, **known))
    new = talk.ask("another in its place", join(group, instance="i"))
    talk.ask("the one before", commit(writer, group, place, member=old.member_id, **known))
    talk.ask("the new one", commit(writer, group, place, member=new.member_id, **known))


@conversation(COMMITTING, alone=True)
def committing_while_a_transaction_ends(talk: Talk) -> None:
    topic = talk.topic("t")
    for name, committed in (("committed", COMMIT), ("aborted", ABORT)):
        writer = stick(talk, begin(talk, name), topic, committed)
        talk.ask(f"while it is {name}", commit(writer, talk.name("g"), (topic, 0, 5)))


@conversation(COMMITTING, rounds="5+")
def offsets_that_are_added_on_the_way(talk: Talk) -> None:
    topic = talk.topic("t")
    group = talk.name("g")
    writer = begin(talk)
    talk.ask("commit", commit(writer, group, (topic, 0, 5)))
    talk.ask("commit more", commit(writer, group, (topic, 0, 6)))
    after = writer.after(talk.ask("end", end(writer, COMMIT)))
    until_at_rest(talk, writer)
    talk.ask("what is committed", fetch(talk, group))
    talk.ask("commit with the epoch before", commit(writer, group, (topic, 0, 7)))
    talk.ask("commit of the next", commit(after, group, (topic, 0, 8)))


@conversation(ApiKey.OFFSET_DELETE, ApiKey.DELETE_GROUPS)
def deleting_what_is_pending(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    group, other = talk.name("g"), talk.name("h")
    writer = begin(talk)
    open_for(talk, writer, group)
    talk.quietly(
        AddOffsetsToTxnRequest(
            transactional_id=writer.id, producer_id=writer.producer_id, producer_epoch=0, group_id=other
        )
    )
    for each in (group, other):
        talk.quietly(commit(writer, each, (topic, 0, 5), (topic, 1, 6)))
    talk.ask("delete an offset", delete(group, (topic.name, 0)))
    talk.ask("delete a group", DeleteGroupsRequest(groups_names=[other]))
    talk.ask("what is stable", stable(talk, group))
    talk.quietly(end(writer, COMMIT), version=4)
    until_at_rest(talk, writer)
    talk.ask("what is left of the offsets", fetch(talk, group, places=((topic, 0), (topic, 1))))
    talk.ask("what is left of the group", fetch(talk, other, places=((topic, 0), (topic, 1))))
