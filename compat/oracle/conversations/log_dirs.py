"""DescribeLogDirs: what a broker keeps, and how much of it."""

from compat.oracle.conversation import conversation
from compat.oracle.preparing import NOWHERE
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest


def describe(*topics: tuple[str, list[int]]) -> DescribeLogDirsRequest:
    return DescribeLogDirsRequest(
        topics=[DescribableLogDirTopic(topic=name, partitions=partitions) for name, partitions in topics]
    )


@conversation(ApiKey.DESCRIBE_LOG_DIRS)
def directories(talk: Talk) -> None:
    topic, other = talk.topic("t", 2), talk.topic("u")
    talk.produce(topic, "a", "b", partition=1)
    talk.produce(topic, "c", partition=1)
    talk.ask("everything", DescribeLogDirsRequest(topics=None))
    talk.ask("nothing", describe())
    talk.ask("some", describe((topic.name, [1]), (other.name, [0])))
    talk.ask("no partitions", describe((topic.name, [])))
    talk.ask("unknown", describe((NOWHERE.name, [0]), (topic.name, [0, 9])))
    talk.ask("the same twice", describe((topic.name, [1, 1]), (topic.name, [1])))
    talk.delete_topic(other)
    talk.ask("deleted", describe((other.name, [0])))
