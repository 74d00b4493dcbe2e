"""The share coordinator: what leaders of partitions keep with it, and who is told that he leads no longer."""

from typing import Any, Final

from compat.oracle.conversation import conversation
from compat.oracle.preparing import NOWHERE, Topic
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages import delete_share_group_state as deleting
from protocol.messages import initialize_share_group_state as initializing
from protocol.messages import read_share_group_state as reading
from protocol.messages import read_share_group_state_summary as summarizing
from protocol.messages import write_share_group_state as writing
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.uuids import uuid_to_text

STATE: Final = (
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
)

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
SHARE: Final = 2

Batch = tuple[int, int, int, int]
"""First and last offset, state, delivery count."""


def initialize(
    group: str, topic: Topic, partition: int = 0, *, epoch: int = 1, start: int = 0
) -> initializing.InitializeShareGroupStateRequest:
    data = initializing.PartitionData(partition=partition, state_epoch=epoch, start_offset=start)
    topics = [initializing.InitializeStateData(topic_id=topic.id, partitions=[data])]
    return initializing.InitializeShareGroupStateRequest(group_id=group, topics=topics)


def read(
    group: str, topic: Topic, partition: int = 0, *, leader: int = 0
) -> reading.ReadShareGroupStateRequest:
    data = reading.PartitionData(partition=partition, leader_epoch=leader)
    topics = [reading.ReadStateData(topic_id=topic.id, partitions=[data])]
    return reading.ReadShareGroupStateRequest(group_id=group, topics=topics)


def summarize(
    group: str, topic: Topic, partition: int = 0, *, leader: int = 0
) -> summarizing.ReadShareGroupStateSummaryRequest:
    data = summarizing.PartitionData(partition=partition, leader_epoch=leader)
    topics = [summarizing.ReadStateSummaryData(topic_id=topic.id, partitions=[data])]
    return summarizing.ReadShareGroupStateSummaryRequest(group_id=group, topics=topics)


def write(
    group: str,
    topic: Topic,
    *batches: Batch,
    partition: int = 0,
    epoch: int = 1,
    leader: int = 0,
    start: int = 0,
    complete: int = -1,
) -> writing.WriteShareGroupStateRequest:
    data = writing.PartitionData(
        partition=partition,
        state_epoch=epoch,
        leader_epoch=leader,
        start_offset=start,
        delivery_complete_count=complete,
        state_batches=[
            writing.StateBatch(
                first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
            )
            for first, last, state, count in batches
        ],
    )
    topics = [writing.WriteStateData(topic_id=topic.id, partitions=[data])]
    return writing.WriteShareGroupStateRequest(group_id=group, topics=topics)


def delete(group: str, topic: Topic, partition: int = 0) -> deleting.DeleteShareGroupStateRequest:
    data = deleting.PartitionData(partition=partition)
    topics = [deleting.DeleteStateData(topic_id=topic.id, partitions=[data])]
    return deleting.DeleteShareGroupStateRequest(group_id=group, topics=topics)


def coordinated(talk: Talk, group: str, topic: Topic, partition: int = 0) -> None:
    """See to it that the share partition has a coordinator which has begun."""
    key = f"{group}:{uuid_to_text(topic.id)}:{partition}"
    request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key])
    talk.until(request, lambda answer: not answer.coordinators[0].error_code)

    def has_begun(answer: Any) -> bool:
        return not answer.results[0].partitions[0].error_code

    talk.until(summarize(group, topic, partition), has_begun)


def place(talk: Talk, partitions: int = 1) -> tuple[str, Topic]:
    """A group and a topic whose share partitions are coordinated."""
    group, topic = talk.name("g"), talk.topic("t", partitions)
    for partition in range(partitions):
        coordinated(talk, group, topic, partition)
    return group, topic


@conversation(*STATE)
def a_share_partition_from_its_beginning_to_its_end(talk: Talk) -> None:
    group, topic = place(talk)
    talk.ask("a summary of nothing", summarize(group, topic))
    talk.ask("read nothing", read(group, topic))
    talk.ask("write to nothing", write(group, topic, (0, 4, ACKNOWLEDGED, 1)))
    talk.ask("delete nothing", delete(group, topic))
    talk.ask("initialize", initialize(group, topic))
    talk.ask("initialize again", initialize(group, topic))
    talk.ask("a summary", summarize(group, topic))
    talk.ask("read", read(group, topic))
    talk.ask("write", write(group, topic, (0, 4, ACKNOWLEDGED, 1), (5, 9, AVAILABLE, 1), complete=5))
    talk.ask("a summary of what was written", summarize(group, topic))
    talk.ask("read what was written", read(group, topic))
    talk.ask("move the start", write(group, topic, (10, 10, ARCHIVED, 5), start=5, complete=1))
    talk.ask("read from the new start", read(group, topic))
    talk.ask("a summary from the new start", summarize(group, topic))
    talk.ask("move the start back", write(group, topic, (0, 3, AVAILABLE, 1), start=2, complete=9))
    talk.ask("read from the same start", read(group, topic))
    talk.ask("a summary from the same start", summarize(group, topic))
    talk.ask("delete", delete(group, topic))
    talk.ask("a summary of what was deleted", summarize(group, topic))
    talk.ask("read what was deleted", read(group, topic))
    talk.ask("delete again", delete(group, topic))
    talk.ask("initialize with an older epoch", initialize(group, topic, epoch=0, start=7))
    talk.ask("read anew", read(group, topic))


@conversation(*STATE)
def a_beginning_that_is_not_known_yet(talk: Talk) -> None:
    group, topic = place(talk)
    talk.ask("initialize", initialize(group, topic, start=-1))
    talk.ask("a summary", summarize(group, topic))
    talk.ask("read", read(group, topic))
    talk.ask("write without a start", write(group, topic, (3, 5, AVAILABLE, 1), start=-1))
    talk.ask("read what was written without a start", read(group, topic))
    talk.ask("write with a start", write(group, topic, start=4, complete=0))
    talk.ask("read what is left", read(group, topic))
    talk.ask("a summary of what is left", summarize(group, topic))


@conversation(*STATE)
def epochs(talk: Talk) -> None:
    group, topic = place(talk)
    talk.ask("initialize", initialize(group, topic, epoch=5))
    talk.ask("initialize with an older state epoch", initialize(group, topic, epoch=4))
    talk.ask("initialize at another start", initialize(group, topic, epoch=5, start=3))
    talk.ask("write with an older state epoch", write(group, topic, epoch=4))
    talk.ask("write with a newer state epoch", write(group, topic, epoch=6, start=3))
    talk.ask("read as a new leader", read(group, topic, leader=2))
    talk.ask("a summary, which says so", summarize(group, topic))
    talk.ask("read as an old leader", read(group, topic, leader=1))
    talk.ask("write as an old leader", write(group, topic, epoch=5, leader=1))
    talk.ask("write as an old leader of an older state", write(group, topic, epoch=4, leader=1))
    talk.ask("a summary for an old leader", summarize(group, topic, leader=1))
    talk.ask("write as a newer leader", write(group, topic, epoch=5, leader=7, start=3))
    talk.ask("write as the leader again", write(group, topic, epoch=5, leader=2, start=3))
    talk.ask("a summary afterwards", summarize(group, topic))
    talk.ask("initialize with a newer epoch", initialize(group, topic, epoch=6))
    talk.ask("a summary of the new state", summarize(group, topic))
    talk.ask("read the new state as an old leader", read(group, topic, leader=1))


@conversation(*STATE)
def batches_that_overlap(talk: Talk) -> None:
    group, topic = place(talk)
    talk.ask("initialize", initialize(group, topic))
    steps: dict[str, tuple[Batch, ...]] = {
        "two that meet": ((0, 4, AVAILABLE, 1), (5, 9, AVAILABLE, 1)),
        "one inside": ((3, 6, ACKNOWLEDGED, 1),),
        "the same as before": ((3, 6, ACKNOWLEDGED, 1),),
        "a weaker one over all": ((0, 12, AVAILABLE, 1),),
        "a stronger one over all": ((0, 12, AVAILABLE, 2),),
        "two that overlap each other": ((10, 20, AVAILABLE, 3), (15, 25, ARCHIVED, 3)),
        "one that joins two": ((13, 14, ARCHIVED, 3),),
        "one far away": ((100, 100, ACKNOWLEDGED, 1),),
        "one before it": ((90, 99, ACKNOWLEDGED, 1),),
        "out of order": ((60, 64, AVAILABLE, 1), (50, 54, AVAILABLE, 1)),
    }
    for label, batches in steps.items():
        talk.ask(f"write {label}", write(group, topic, *batches))
        talk.ask(f"read {label}", read(group, topic))
    talk.ask("cut one", write(group, topic, start=17))
    talk.ask("read what was cut", read(group, topic))


@conversation(*STATE)
def what_cannot_be(talk: Talk) -> None:
    group, topic = place(talk)
    requests: dict[str, Any] = {
        "initialize": initialize,
        "read": read,
        "a summary of": summarize,
        "write": lambda *where: write(*where[:2], partition=where[2] if len(where) > 2 else 0),
        "delete": delete,
    }
    for label, request in requests.items():
        talk.ask(f"{label} a partition that is not there", request(group, topic, 7))
        talk.ask(f"{label} a negative partition", request(group, topic, -1))
        talk.ask(f"{label} an unknown topic", request(group, NOWHERE))
        talk.ask(f"{label} no topic", request(group, Topic("", bytes(16))))
        talk.ask(f"{label} without a group", request("", topic))
    talk.ask("initialize with a negative epoch", initialize(group, topic, epoch=-1))
    talk.ask("read as no leader", read(group, topic, leader=-1))
    talk.ask("a summary for no leader", summarize(group, topic, leader=-1))
    talk.ask("write as no leader", write(group, topic, leader=-1))
    talk.ask("write with a negative epoch", write(group, topic, epoch=-1))
    talk.ask("initialize", initialize(group, topic))
    talk.ask("read with an unknown partition", read(group, topic, 7))
    talk.ask("write with a start of -2", write(group, topic, start=-2))
    talk.ask("read what came of it", read(group, topic))


@conversation(*STATE)
def nothing_to_do(talk: Talk) -> None:
    group, topic = place(talk)
    for request in (
        initializing.InitializeShareGroupStateRequest,
        reading.ReadShareGroupStateRequest,
        summarizing.ReadShareGroupStateSummaryRequest,
        writing.WriteShareGroupStateRequest,
        deleting.DeleteShareGroupStateRequest,
    ):
        talk.ask(f"{request.__name__} without topics", request(group_id=group))
    talk.ask(
        "initialize a topic without partitions",
        initializing.InitializeShareGroupStateRequest(
            group_id=group, topics=[initializing.InitializeStateData(topic_id=topic.id)]
        ),
    )
    talk.ask(
        "read a topic without partitions",
        reading.ReadShareGroupStateRequest(group_id=group, topics=[reading.ReadStateData(topic_id=topic.id)]),
    )
    talk.ask(
        "a summary of a topic without partitions",
        summarizing.ReadShareGroupStateSummaryRequest(
            group_id=group, topics=[summarizing.ReadStateSummaryData(topic_id=topic.id)]
        ),
    )
    talk.ask(
        "write to a topic without partitions",
        writing.WriteShareGroupStateRequest(
            group_id=group, topics=[writing.WriteStateData(topic_id=topic.id)]
        ),
    )
    talk.ask(
        "delete a topic without partitions",
        deleting.DeleteShareGroupStateRequest(
            group_id=group, topics=[deleting.DeleteStateData(topic_id=topic.id)]
        ),
    )


@conversation(*STATE)
def several_partitions(talk: Talk) -> None:
    group, topic = place(talk, partitions=3)
    request = initialize(group, topic)
    request.topics[0].partitions += [
        initializing.PartitionData(partition=partition, state_epoch=1) for partition in (2, 9, 1)
    ]
    talk.ask("initialize", request)
    reads = read(group, topic)
    reads.topics[0].partitions += [reading.PartitionData(partition=partition) for partition in (1, 9, 1)]
    talk.ask("read, one of them twice", reads)
    deletes = delete(group, topic)
    deletes.topics[0].partitions += [deleting.PartitionData(partition=partition) for partition in (1, 9)]
    talk.ask("delete", deletes)
    summaries = summarize(group, topic)
    summaries.topics[0].partitions += [summarizing.PartitionData(partition=index) for index in (1, 2)]
    talk.ask("a summary", summaries)


@conversation(*STATE)
def a_deleted_topic(talk: Talk) -> None:
    group, topic = place(talk)
    talk.ask("initialize", initialize(group, topic))
    talk.delete_topic(topic)
    talk.ask("read", read(group, topic))
    talk.ask("a summary", summarize(group, topic))
    talk.ask("write", write(group, topic))
    talk.ask("delete", delete(group, topic))
