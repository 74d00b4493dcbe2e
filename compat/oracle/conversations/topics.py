"""CreateTopics, CreatePartitions and DeleteTopics.

Many more kinds of requests, in one version each, stand in ``tests/golden/metadata``.
"""

from collections.abc import Sequence

from compat.oracle.conversation import conversation
from compat.oracle.preparing import NOWHERE
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic


def new(name: str, partitions: int = 1, replicas: int = 1, **settings: str | None) -> CreatableTopic:
    configs = [
        CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()
    ]
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, configs=configs)


def assigned(name: str, *assignments: tuple[int, list[int]]) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in assignments
        ],
    )


def create(
    *topics: CreatableTopic, timeout_ms: int = 30_000, validate_only: bool = False
) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only)


def grow(
    *topics: tuple[str, int] | tuple[str, int, Sequence[Sequence[int]]],
    timeout_ms: int = 30_000,
    validate_only: bool = False,
) -> CreatePartitionsRequest:
    """Topics are a name, the new count, and perhaps who gets the new partitions."""
    return CreatePartitionsRequest(
        timeout_ms=timeout_ms,
        validate_only=validate_only,
        topics=[
            CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=[
                    CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in assignments[0]
                ]
                if assignments
                else None,
            )
            for name, count, *assignments in topics
        ],
    )


def ask_for(*names: str) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


@conversation(ApiKey.CREATE_TOPICS)
def creating(talk: Talk) -> None:
    name = talk.name
    talk.ask("one", create(new(name("t"), 2)))
    talk.ask("it exists", create(new(name("t"))))
    talk.ask("two, with settings", create(new(name("u"), retention_ms="1000"), new(name("v"), 3)))
    talk.ask("counts by default", create(new(name("w"), -1, -1)))
    talk.ask("assigned", create(assigned(name("x"), (0, [1]), (1, [1]))))
    talk.ask("only validated", create(new(name("y")), validate_only=True))
    talk.ask("only validated, and it exists", create(new(name("t")), validate_only=True))
    talk.ask("nothing", create())
    talk.ask("the same name twice", create(new(name("z")), new(name("z")), new(name("zz"))))
    talk.ask("good and bad", create(new(name("good")), new(name("a b"))))
    talk.ask("an internal topic", create(new("__consumer_offsets")))
    talk.ask("no time", create(new(name("late")), timeout_ms=0))
    talk.settle()
    names = ("t", "u", "v", "w", "x", "y", "z", "zz", "good")
    talk.ask("what is there", ask_for(*(name(each) for each in names)))


@conversation(ApiKey.CREATE_TOPICS)
def refusals(talk: Talk) -> None:
    t = talk.name("t")
    for label, topic in {
        "a bad name": new("a b"),
        "an empty name": new(""),
        "a dot": new("."),
        "a name that is too long": new("x" * 250),
        "no partitions": new(t, 0),
        "fewer than no partitions": new(t, -2),
        "too many partitions": new(t, 10_001),
        "no replicas": new(t, 1, 0),
        "fewer than no replicas": new(t, 1, -2),
        "more replicas than brokers": new(t, 1, 2),
        "an unknown setting": new(t, no_such_setting="1"),
        "a bad value": new(t, retention_ms="x"),
        "a value that is null": new(t, retention_ms=None),
        "assigned to an unknown broker": assigned(t, (0, [7])),
        "assigned to nobody": assigned(t, (0, [])),
        "assigned to a broker twice": assigned(t, (0, [1, 1])),
        "assigned with a gap": assigned(t, (0, [1]), (2, [1])),
        "assigned twice": assigned(t, (0, [1]), (0, [1])),
    }.items():
        talk.ask(label, create(topic))
    with_both = assigned(t, (0, [1]))
    with_both.num_partitions = 1
    talk.ask("assigned, and a count", create(with_both))
    talk.topic("a.b")
    talk.ask("a name that collides", create(new(talk.name("a_b"))))


@conversation(ApiKey.CREATE_PARTITIONS)
def growing(talk: Talk) -> None:
    topic, other = talk.topic("t", 2).name, talk.topic("u").name
    talk.ask("one more", grow((topic, 3)))
    talk.settle()
    for count in (3, 2, 0, -1):
        talk.ask(f"to {count}", grow((topic, count)))
    talk.ask("by too many", grow((topic, 10_004)))
    talk.ask("only validated", grow((topic, 9), validate_only=True))
    talk.ask("only validated, to fewer", grow((topic, 1), validate_only=True))
    talk.ask("unknown", grow((NOWHERE.name, 3)))
    talk.ask("an empty name", grow(("", 3)))
    talk.ask("the same twice", grow((topic, 5), (topic, 6), (other, 2)))
    talk.ask("assigned", grow((topic, 4, [[1]])))
    talk.settle()
    talk.ask("assigned too many", grow((topic, 5, [[1], [1]])))
    talk.ask("assigned too few", grow((topic, 9, [[1]])))
    talk.ask("assigned to an unknown broker", grow((topic, 5, [[9]])))
    talk.ask("assigned to nobody", grow((topic, 5, [[]])))
    talk.ask("assigned to a broker twice", grow((topic, 5, [[1, 1]])))
    talk.ask("good and bad", grow((topic, 5), (NOWHERE.name, 2)))
    talk.ask("nothing", grow())
    talk.ask("no time", grow((other, 7), timeout_ms=0))
    talk.settle()
    talk.ask("what is there", ask_for(topic, other))


@conversation(ApiKey.DELETE_TOPICS)
def deleting_by_name(talk: Talk) -> None:
    name = talk.name
    for each in ("t", "u", "v", "w"):
        talk.topic(each)

    def delete(label: str, *names: str, timeout_ms: int = 30_000) -> None:
        request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)
        if talk.version_of(ApiKey.DELETE_TOPICS) >= 6:
            states = [DeleteTopicState(name=each) for each in names]
            request = DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)
        talk.ask(label, request)

    delete("one", name("t"))
    talk.settle()
    delete("it is gone", name("t"))
    delete("one and an unknown one", name("u"), NOWHERE.name)
    delete("the same twice", name("v"), name("v"))
    delete("an empty name", "")
    delete("a bad name", "a b")
    delete("nothing")
    delete("the metadata log", "__cluster_metadata")
    delete("no time", name("w"), timeout_ms=0)
    talk.settle()
    talk.ask("what is left", ask_for(*(name(each) for each in ("t", "u", "v", "w"))))


@conversation(ApiKey.DELETE_TOPICS, rounds="6+")
def deleting_by_id(talk: Talk) -> None:
    first, second = talk.topic("t"), talk.topic("u")

    def delete(label: str, *states: DeleteTopicState) -> None:
        talk.ask(label, DeleteTopicsRequest(topics=list(states), timeout_ms=30_000))

    delete("an unknown id", DeleteTopicState(topic_id=NOWHERE.id))
    delete("neither name nor id", DeleteTopicState())
    delete("both name and id", DeleteTopicState(name=first.name, topic_id=first.id))
    delete("the same id twice", DeleteTopicState(topic_id=first.id), DeleteTopicState(topic_id=first.id))
    delete("a name, and its id", DeleteTopicState(name=first.name), DeleteTopicState(topic_id=first.id))
    delete("by id", DeleteTopicState(topic_id=first.id))
    talk.settle()
    delete("it is gone", DeleteTopicState(topic_id=first.id), DeleteTopicState(topic_id=second.id))


@conversation(ApiKey.DELETE_TOPICS)
def what_goes_with_a_topic(talk: Talk) -> None:
    """Everything that names a topic refuses it once it is deleted."""
    topic = talk.topic("t")
    states = [DeleteTopicState(name=topic.name)]
    if talk.version_of(ApiKey.DELETE_TOPICS) >= 6:
        talk.ask("delete", DeleteTopicsRequest(topics=states, timeout_ms=30_000))
    else:
        talk.ask("delete", DeleteTopicsRequest(topic_names=[topic.name], timeout_ms=30_000))
    talk.settle()
    talk.ask("metadata", ask_for(topic.name))
    talk.ask("create it again", create(new(topic.name, 2)))
    talk.settle()
    talk.ask("metadata again", ask_for(topic.name))
