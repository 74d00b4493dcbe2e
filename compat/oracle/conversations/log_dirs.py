"""What a broker keeps where, and how much of it; moves between its directories."""

from compat.oracle.conversation import conversation
from compat.oracle.preparing import NOWHERE
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest


def describe(*topics: tuple[str, list[int]]) -> DescribeLogDirsRequest:
    return DescribeLogDirsRequest(
        topics=[DescribableLogDirTopic(topic=name, partitions=partitions) for name, partitions in topics]
    )


def move(*wishes: tuple[str, str, list[int]]) -> AlterReplicaLogDirsRequest:
    """Each wish is a directory, a topic and partitions of it."""
    return AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=partitions)])
            for path, topic, partitions in wishes
        ]
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


@conversation(ApiKey.ALTER_REPLICA_LOG_DIRS)
def moves_of_a_broker_with_one_directory(talk: Talk) -> None:
    here, topic = talk.origin.log_dir, talk.topic("t", 2).name
    talk.ask("nothing", AlterReplicaLogDirsRequest(dirs=[]))
    talk.ask("no topics", AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=here, topics=[])]))
    talk.ask("no partitions", move((here, topic, [])))
    talk.ask("where they are", move((here, topic, [0, 1])))
    talk.ask("the same partition twice", move((here, topic, [0, 0])))
    talk.ask("an unknown directory", move(("/nowhere", topic, [0])))
    talk.ask("no directory", move(("", topic, [0])))
    talk.ask("a directory by another name", move((f"{here}/", topic, [0])))
    talk.ask("an unknown topic", move((here, talk.name("nowhere"), [0])))
    talk.ask("unknown partitions", move((here, topic, [-1, 2])))
    talk.ask("no name", move((here, "", [0])))
    talk.ask("a name that is too long", move((here, "x" * 214, [0])))
    talk.ask("a name that is just not too long", move((here, "x" * 213, [0])))
    talk.ask("two directories for one", move((here, topic, [0]), ("/nowhere", topic, [0])))
    talk.ask(
        "two directories for one, the right one last", move(("/nowhere", topic, [0]), (here, topic, [0]))
    )
    talk.ask("good and bad", move((here, topic, [0, 7]), ("/nowhere", topic, [1])))
