"""DeleteRecords: moving the start of partitions forward."""

from compat.oracle.conversation import conversation
from compat.oracle.grouping import by_topic
from compat.oracle.preparing import NOWHERE
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

HIGH_WATERMARK = -1


def delete(*places: tuple[str, int, int], timeout_ms: int = 10_000) -> DeleteRecordsRequest:
    """Places are topic, partition and the offset to delete up to."""
    return DeleteRecordsRequest(
        timeout_ms=timeout_ms,
        topics=[
            DeleteRecordsTopic(
                name=name,
                partitions=[
                    DeleteRecordsPartition(partition_index=index, offset=offset)
                    for index, offset in partitions
                ],
            )
            for name, partitions in by_topic(places)
        ],
    )


@conversation(ApiKey.DELETE_RECORDS)
def offsets(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    talk.produce(topic, "a", "b", "c", "d")
    for offset in (2, 2, 1, 0, 3):
        talk.ask(f"up to {offset}, step {len(talk.steps)}", delete((topic.name, 0, offset)))
    talk.ask("past the end", delete((topic.name, 0, 5)))
    talk.ask("a negative offset", delete((topic.name, 0, -2)))
    talk.ask("up to the end", delete((topic.name, 0, HIGH_WATERMARK)))
    talk.ask("of an empty partition", delete((topic.name, 1, HIGH_WATERMARK)))


@conversation(ApiKey.DELETE_RECORDS)
def places(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    talk.produce(topic, "a", "b")
    talk.ask("nowhere", delete())
    talk.ask("unknown topic", delete((NOWHERE.name, 0, 0)))
    talk.ask("an empty name", delete(("", 0, 0)))
    talk.ask("unknown partition", delete((topic.name, 7, 0)))
    talk.ask("negative partition", delete((topic.name, -1, 0)))
    talk.ask("several", delete((topic.name, 0, 1), (NOWHERE.name, 0, 0), (topic.name, 1, 0)))
    twice = delete((topic.name, 0, 0), (NOWHERE.name, 0, 0))
    twice.topics += delete((topic.name, 1, 0), (NOWHERE.name, 1, 0)).topics
    talk.ask("topics named twice", twice)
    empty = delete((topic.name, 0, 1))
    empty.topics += [DeleteRecordsTopic(name=topic.name), DeleteRecordsTopic(name=NOWHERE.name)]
    talk.ask("topics without partitions", empty)
    talk.ask("an internal topic", delete(("__consumer_offsets", 0, 0)))
    talk.ask("the metadata log", delete(("__cluster_metadata", 0, 0)))
    talk.ask("no time", delete((topic.name, 0, 2), timeout_ms=0))
    compacted = talk.topic("compacted", cleanup_policy="compact")
    talk.ask("a compacted topic", delete((compacted.name, 0, 0)))
    both = talk.topic("both", cleanup_policy="compact,delete")
    talk.ask("a topic that is compacted and deleted", delete((both.name, 0, 0)))
