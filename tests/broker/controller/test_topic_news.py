"""Lines of the log about topics."""

from io import StringIO

import pytest

from broker.controller.topic_news import NAMED_MAX, TopicNews
from broker.logs import Log
from broker.metadata import replay
from broker.metadata.image import empty_image
from protocol.schema import Message
from protocol.stored.metadata_records import (
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)


class Told:
    """What is said of records, one batch after the other."""

    def __init__(self) -> None:
        self._image, _ = replay.apply(empty_image("cluster"), [NoOpRecord()], offset=0, epoch=1)
        self._lines = StringIO()
        self._news = TopicNews(Log(self._lines), self._image)

    def after(self, *records: Message) -> list[str]:
        self._lines.seek(0)
        self._lines.truncate()
        self._image, changes = replay.apply(self._image, records, offset=self._image.offset + 1, epoch=1)
        self._news.publish(self._image, changes)
        return [line.partition("INFO  ")[2] for line in self._lines.getvalue().splitlines()]


def id_of(number: int) -> bytes:
    return number.to_bytes(16, "big")


def partitions(topic: int, *indexes: int) -> list[Message]:
    return [
        PartitionRecord(partition_id=index, topic_id=id_of(topic), replicas=[1], isr=[1], leader=1)
        for index in indexes
    ]


def topic(number: int, partition_count: int = 1) -> list[Message]:
    record = TopicRecord(name=f"t{number}", topic_id=id_of(number))
    return [record, *partitions(number, *range(partition_count))]


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_topic_comes_grows_and_goes(told: Told) -> None:
    assert told.after(*topic(1, 2)) == ["created topic t1 (2 partitions)"]
    assert told.after(*partitions(1, 2)) == ["enlarged topic t1 (3 partitions)"]
    assert told.after(RemoveTopicRecord(topic_id=id_of(1))) == ["deleted topic t1"]


def test_who_comes_into_a_cluster_does_not_tell_what_was_there(told: Told) -> None:
    nothing = empty_image("cluster")
    image, changes = replay.apply(nothing, topic(1), offset=1, epoch=1)
    lines = StringIO()
    TopicNews(Log(lines), nothing).publish(image, changes)
    assert lines.getvalue() == ""


def test_another_leader_is_no_news(told: Told) -> None:
    told.after(*topic(1))
    assert told.after(PartitionChangeRecord(partition_id=0, topic_id=id_of(1), leader=-1)) == []


def test_many_at_once_are_one_line(told: Told) -> None:
    records = [record for number in range(NAMED_MAX + 5) for record in topic(number + 1)]
    (line,) = told.after(*records)
    assert line.startswith("created topics t1 (1 partition), t2 (1 partition), ")
    assert line.endswith("t10 (1 partition), and 5 more")


def test_one_that_is_made_anew_under_its_name_goes_and_comes(told: Told) -> None:
    told.after(*topic(1))
    again = TopicRecord(name="t1", topic_id=id_of(2))
    assert told.after(RemoveTopicRecord(topic_id=id_of(1)), again, *partitions(2, 0)) == [
        "deleted topic t1",
        "created topic t1 (1 partition)",
    ]
