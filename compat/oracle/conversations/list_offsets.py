"""ListOffsets: positions, times, and partitions that are not there."""

from compat.oracle.conversation import conversation
from compat.oracle.grouping import by_topic
from compat.oracle.preparing import LONG_AGO_MS, NOWHERE
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.records.compression import Compression

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = (
    -1,
    -2,
    -3,
    -4,
    -5,
    -6,
)

POSITIONS = {
    "latest": LATEST,
    "earliest": EARLIEST,
    "the largest timestamp": MAX_TIMESTAMP,
    "earliest local": EARLIEST_LOCAL,
    "latest tiered": LATEST_TIERED,
    "earliest pending upload": EARLIEST_PENDING_UPLOAD,
}


def look_up(
    *places: tuple[str, int, int], replica: int = -1, isolation: int = 0, epoch: int = -1
) -> ListOffsetsRequest:
    """Places are topic, partition and timestamp."""
    return ListOffsetsRequest(
        replica_id=replica,
        isolation_level=isolation,
        topics=[
            ListOffsetsTopic(
                name=name,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=index, timestamp=timestamp, current_leader_epoch=epoch
                    )
                    for index, timestamp in partitions
                ],
            )
            for name, partitions in by_topic(places)
        ],
    )


@conversation(ApiKey.LIST_OFFSETS)
def positions(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    talk.produce(topic, "a", "b", "c")
    talk.produce(topic, "d", "e", compression=Compression.GZIP)
    for label, timestamp in {
        **POSITIONS,
        "no such position": -7,
        "no such position, far": -(2**63),
        "a time before all": 0,
        "a time inside a batch": LONG_AGO_MS + 1,
        "a time inside two batches": LONG_AGO_MS + 2,
        "a time after all": LONG_AGO_MS + 1000,
    }.items():
        talk.ask(label, look_up((topic.name, 0, timestamp)))
        talk.ask(f"{label}, of an empty partition", look_up((topic.name, 1, timestamp)))


@conversation(ApiKey.LIST_OFFSETS)
def after_records_were_deleted(talk: Talk) -> None:
    topic = talk.topic("t")
    talk.produce(topic, "a", "b", "c")
    talk.produce(topic, "d")
    talk.delete_records(topic, 2)
    for label, timestamp in {**POSITIONS, "a time that was deleted": LONG_AGO_MS}.items():
        talk.ask(label, look_up((topic.name, 0, timestamp)))
    talk.delete_records(topic, 4)
    for label, timestamp in {**POSITIONS, "a time that was deleted": LONG_AGO_MS}.items():
        talk.ask(f"{label}, with nothing left", look_up((topic.name, 0, timestamp)))


@conversation(ApiKey.LIST_OFFSETS)
def append_time(talk: Talk) -> None:
    topic = talk.topic("t", message_timestamp_type="LogAppendTime")
    talk.produce(topic, "a", "b", "c")
    talk.ask("the largest timestamp", look_up((topic.name, 0, MAX_TIMESTAMP)))
    talk.ask("a time before all", look_up((topic.name, 0, LONG_AGO_MS)))


@conversation(ApiKey.LIST_OFFSETS)
def places(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    t = topic.name
    talk.ask("nowhere", look_up())
    talk.ask("unknown topic", look_up((NOWHERE.name, 0, LATEST)))
    talk.ask("an empty name", look_up(("", 0, LATEST)))
    talk.ask("unknown partition", look_up((t, 7, LATEST)))
    talk.ask("negative partition", look_up((t, -1, EARLIEST)))
    talk.ask("unknown partition, by time", look_up((t, 7, LONG_AGO_MS)))
    talk.ask("unknown partition, no such position", look_up((t, 7, -9)))
    talk.ask("the same twice", look_up((t, 0, LATEST), (t, 0, EARLIEST)))
    talk.ask("several", look_up((t, 1, LATEST), (NOWHERE.name, 0, LATEST), (t, 0, EARLIEST)))
    twice = look_up((t, 0, LATEST), (NOWHERE.name, 0, LATEST))
    twice.topics += look_up((t, 1, LATEST), (NOWHERE.name, 1, LATEST)).topics
    talk.ask("topics named twice", twice)
    empty = look_up((t, 0, LATEST))
    empty.topics += [ListOffsetsTopic(name=t), ListOffsetsTopic(name=NOWHERE.name)]
    talk.ask("topics without partitions", empty)
    talk.ask("current leader epoch", look_up((t, 0, LATEST), epoch=0))
    talk.ask("a leader epoch to come", look_up((t, 0, LATEST), epoch=5))
    talk.ask("a leader epoch to come, earliest", look_up((t, 0, EARLIEST), epoch=5))
    talk.ask("a leader epoch to come, by time", look_up((t, 0, LONG_AGO_MS), epoch=5))
    for isolation in (1, 9):
        talk.ask(f"isolation level {isolation}", look_up((t, 0, LATEST), isolation=isolation))
    spoilt = look_up((t, 0, LATEST), (NOWHERE.name, 0, LATEST), (t, 0, LATEST), isolation=9)
    spoilt.topics += [ListOffsetsTopic(name=t), *look_up((t, 1, LATEST)).topics]
    talk.ask("isolation level 9 of everything", spoilt)
    for replica in (-2, -3, 1, 7):
        talk.ask(f"replica {replica}", look_up((t, 0, LATEST), replica=replica))
