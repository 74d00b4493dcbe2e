"""A conversation about topics and brokers: the requests, in order, whose answers ``record.py`` keeps.

Each step builds on what the ones before it have changed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.schema import Message
from protocol.uuids import ZERO_UUID

ANSWERS: dict[type[Message], type[Message]] = {
    ApiVersionsRequest: ApiVersionsResponse,
    CreatePartitionsRequest: CreatePartitionsResponse,
    CreateTopicsRequest: CreateTopicsResponse,
    DeleteTopicsRequest: DeleteTopicsResponse,
    DescribeClusterRequest: DescribeClusterResponse,
    DescribeTopicPartitionsRequest: DescribeTopicPartitionsResponse,
    MetadataRequest: MetadataResponse,
}

Ids = Mapping[str, bytes]
"""The ids of the topics, by name, as far as answers have told them."""

Ask = Callable[[Ids], Message]


class Step(NamedTuple):
    label: str
    version: int
    ask: Ask


NO_SUCH_ID = b"\x01" * 16

STEPS: list[Step] = []


def step(label: str, version: int, request: Message | Ask) -> None:
    ask: Ask = request if not isinstance(request, Message) else lambda _: request
    STEPS.append(Step(f"{label}, version {version}", version, ask))


# CreateTopics


def new(name: str, partitions: int = 1, replicas: int = 1, **settings: str | None) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()
        ],
    )


def assigned(
    name: str, *assignments: tuple[int, Sequence[int]], partitions: int = -1, replicas: int = -1
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in assignments
        ],
    )


def create(
    label: str,
    *topics: CreatableTopic,
    version: int = 7,
    timeout_ms: int = 60_000,
    validate_only: bool = False,
) -> None:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only)
    step(f"create: {label}", version, request)


create("two partitions and a setting", new("pa", 2, retention_ms="100000"))
for version in (2, 4, 5, 7):
    create("exists", new("pa"), version=version)
create("the same name twice", new("pb"), new("pb"), new("pc"))
for name in ("", ".", "..", "x" * 249, "x" * 250, "a/b", "ü", "a b", "__cluster_metadata"):
    create(f"a topic called {name[:20]!r}", new(name))
create("validate only", new("pv"), validate_only=True)
create("validate only, exists", new("pa"), validate_only=True)
create("a name with a dot", new("p.q"))
create("a name that collides", new("p_q"))
create("a name that collides with itself", new("p.q"))
create("names that collide with each other", new("r.q"), new("r_q"))
create("no partitions", new("pd", 0))
create("fewer than no partitions", new("pd", -2))
create("counts by default", new("pd", -1, -1))
create("counts by default", new("pe", -1, -1), version=4)
for replicas in (0, 2, -2):
    create(f"{replicas} replicas", new("pf", 1, replicas))
create("neither partitions nor replicas", new("pf", 0, 0))
create("assigned", assigned("pg", (0, [1]), (1, [1])))
create("assigned in another order", assigned("po", (1, [1]), (0, [1])))
create("assigned, with replicas", assigned("ph", (0, [1]), replicas=1))
create("assigned, with partitions", assigned("ph", (0, [1]), partitions=1))
create("assigned twice", assigned("ph", (0, [1]), (0, [1])))
create("assigned with a gap", assigned("ph", (0, [1]), (2, [1])))
create("assigned to nobody known", assigned("ph", (0, [7])))
create("assigned to a negative broker", assigned("ph", (0, [-1])))
create("assigned to nobody", assigned("ph", (0, [])))
create("assigned to one broker twice", assigned("ph", (0, [1, 1])))
create("assigned to different counts", assigned("ph", (0, [1]), (1, [])))
create("an unknown setting", new("pi", bogus="1"))
create("a bad value", new("pi", retention_ms="x"))
create("null values", new("pi", retention_ms=None, cleanup_policy=None))
create("spaces around a value", new("pj", retention_ms=" 100000 "))
create("more in sync than there are", new("pr", min_insync_replicas="3"))
create("10001 partitions", new("pl", 10_001))
create("10001 partitions and a good topic", new("pl", 10_001), new("pm"))
create("10000 partitions", new("pl", 10_000))
create("9999 partitions, validate only", new("pl", 9_999), validate_only=True)
create("no time", new("pn"), timeout_ms=0)
create("less than no time", new("pn"), timeout_ms=-1)
create("no time, the same name twice", new("pn"), new("pn"), timeout_ms=0)
create("nothing")
create("exists, with an unknown setting", new("pa", bogus="1"))
create("a bad name, with an unknown setting", new("a/b", bogus="1"))

# Metadata


def metadata(
    label: str,
    *names: str | None,
    version: int = 13,
    everything: bool = False,
    ids: Callable[[Ids], Sequence[bytes]] = lambda _: (),
    may_create: bool = False,
    operations: bool = False,
) -> None:
    def ask(known: Ids) -> MetadataRequest:
        topics = [MetadataRequestTopic(name=name) for name in names]
        topics += [MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in ids(known)]
        return MetadataRequest(
            topics=None if everything else topics,
            allow_auto_topic_creation=may_create or version < 4,
            include_topic_authorized_operations=operations,
            include_cluster_authorized_operations=operations and 8 <= version <= 10,
        )

    step(f"metadata: {label}", version, ask)


for version in range(14):
    metadata("one topic", "pa", version=version)
metadata("an empty list", version=0)
metadata("an empty list", version=1)
metadata("an empty list")
for version in (1, 9, 13):
    metadata("all topics", version=version, everything=True)
metadata("unknown", "nope")
metadata("a bad name", "a/b")
metadata("an empty name", "")
metadata("a bad name, may create", "a/b", may_create=True)
metadata("twice, and unknown", "pa", "pa", "nope")
metadata("by id", ids=lambda ids: [ids["pa"]])
metadata("by id, twice", ids=lambda ids: [ids["pa"], ids["pa"]])
metadata("by id", version=12, ids=lambda ids: [ids["pa"]])
metadata("by unknown id", ids=lambda _: [NO_SUCH_ID])
metadata("by id in a version without", version=10, ids=lambda ids: [ids["pa"]])
metadata("a null name in a version without", version=11, ids=lambda _: [ZERO_UUID])
metadata("neither name nor id", version=12, ids=lambda _: [ZERO_UUID])
metadata("neither name nor id, beside a name", "pa", ids=lambda _: [ZERO_UUID])
metadata("a name and an id", "pg", ids=lambda ids: [ids["pa"]])
metadata("a name and an unknown id", "pa", ids=lambda _: [NO_SUCH_ID])
metadata("operations", "pa", "nope", operations=True)
metadata("operations", "pa", "nope", version=8, operations=True)
metadata("operations of everything", everything=True, version=10, operations=True)
metadata("internal topics", "__consumer_offsets", "__transaction_state", "__share_group_state")
metadata("the metadata log", "__cluster_metadata")
metadata("unknown, may create", "auto1", may_create=True)
metadata("created meanwhile", "auto1")
metadata("unknown in a version that creates", "auto2", version=0)
metadata("created meanwhile", "auto2", version=1)
metadata("a colliding name, may create", "p_q", may_create=True)
metadata("a colliding name again", "p_q")
metadata("an internal topic, may create", "__consumer_offsets", may_create=True)
metadata("an internal topic, created meanwhile", "__consumer_offsets")
metadata("the metadata log, may create", "__cluster_metadata", may_create=True)
metadata("the metadata log, not created", "__cluster_metadata")
create("an internal topic that exists", new("__consumer_offsets"))

# CreatePartitions


def grow(
    label: str,
    *topics: tuple[str, int] | tuple[str, int, Sequence[Sequence[int]]],
    version: int = 3,
    timeout_ms: int = 60_000,
    validate_only: bool = False,
) -> None:
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(
                name=topic[0],
                count=topic[1],
                assignments=None
                if len(topic) == 2
                else [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in topic[2]],
            )
            for topic in topics
        ],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )
    step(f"grow: {label}", version, request)


grow("one more", ("pa", 3))
for count in (3, 1, 0, -1):
    grow(f"to {count}", ("pa", count))
grow("unknown", ("nope", 3))
grow("an empty name", ("", 3))
grow("the same topic twice", ("pa", 4), ("pa", 4), ("pg", 3))
grow("assigned", ("pa", 5, [[1], [1]]))
grow("assigned too many", ("pa", 6, [[1], [1]]))
grow("assigned none", ("pa", 6, []))
grow("assigned to nobody known", ("pa", 6, [[9]]))
grow("assigned to nobody", ("pa", 6, [[]]))
grow("assigned to one broker twice", ("pa", 6, [[1, 1]]))
grow("validate only", ("pa", 6), validate_only=True)
grow("validate only", ("pa", 6), version=0, validate_only=True)
grow("by 10001", ("pa", 10_006))
grow("by 10001 in all", ("pa", 10_005), ("pg", 4))
grow("by 10000, validate only", ("pa", 10_005), validate_only=True)
grow("no time", ("pa", 7), timeout_ms=0)
grow("no time, the same topic twice", ("pa", 7), ("pa", 7), timeout_ms=0, version=1)
grow("nothing")

# DescribeTopicPartitions


def describe(label: str, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> None:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    step(f"describe: {label}", 0, request)


describe("one topic", "pa")
describe("several, unknown ones and twice", "pg", "pa", "nope", "pa")
describe("everything")
describe("a bad name", "a/b")
describe("an empty name", "", "pa")
for limit in (2, 0, -5, 5):
    describe(f"at most {limit}", "pg", "pa", limit=limit)
describe("the limit met at the end of a topic", "pa", "zz", limit=5)
describe("unknown ones do not count", "nope", "pa", limit=1)
describe("from a cursor", "pg", "pa", cursor=("pa", 2))
describe("from a cursor behind the last partition", "pg", "pa", cursor=("pa", 9))
describe("from an unknown topic", "pg", "pa", cursor=("pz", 0))
describe("from a topic not asked for", "pg", "pa", cursor=("pb", 0))
describe("from a negative partition", "pg", "pa", cursor=("pa", -1))
describe("everything from a cursor", cursor=("pe", 0))
describe("everything from an unknown topic", cursor=("paa", 3))
describe("everything from a negative partition", cursor=("pa", -1))

# DeleteTopics


def delete(
    label: str,
    *topics: str | DeleteTopicState | Callable[[Ids], DeleteTopicState],
    version: int = 6,
    timeout_ms: int = 60_000,
) -> None:
    def ask(known: Ids) -> DeleteTopicsRequest:
        if version < 6:
            names = [topic for topic in topics if isinstance(topic, str)]
            return DeleteTopicsRequest(topic_names=names, timeout_ms=timeout_ms)
        states = []
        for topic in topics:
            if isinstance(topic, str):
                states.append(DeleteTopicState(name=topic))
            else:
                states.append(topic if isinstance(topic, DeleteTopicState) else topic(known))
        return DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)

    step(f"delete: {label}", version, ask)


def by_id(name: str) -> Callable[[Ids], DeleteTopicState]:
    return lambda ids: DeleteTopicState(name=None, topic_id=ids[name])


delete("unknown", "nope")
delete("an unknown id", DeleteTopicState(name=None, topic_id=NO_SUCH_ID))
delete("neither name nor id", DeleteTopicState(name=None))
delete("both name and id", DeleteTopicState(name="pa", topic_id=NO_SUCH_ID))
delete("the same name twice", "pa", "pa")
delete("the same id twice", by_id("pa"), by_id("pa"))
delete("a name and its id", "pa", by_id("pa"))
delete("a name and its id, twice", "pa", by_id("pa"), by_id("pa"))
delete("an empty name", "")
delete("the metadata log", "__cluster_metadata")
delete("by name", "pc")
delete("by id", by_id("pd"))
delete("one and an unknown one", "pe", "nope", version=1)
delete("one and an unknown one twice", "pg", "nope", "nope", version=5)
delete("nothing", version=3)
delete("no time", "pa", timeout_ms=0)
delete("no time, unknown", "nope", timeout_ms=0, version=4)
delete("no time, the same name twice", "pa", "pa", timeout_ms=0)
metadata("not deleted", "pa")
metadata("deleted", "pc", "pd", "pe", "pg")
delete("an internal topic", "__consumer_offsets")
delete("a name that collided", "p.q")
create("a name that collides no more", new("p_q"))
create("a deleted name", new("pc", 3))
metadata("everything that is left", everything=True)

# DescribeCluster


def cluster(
    label: str, *, version: int, kind: int = 1, operations: bool = False, fenced: bool = False
) -> None:
    request = DescribeClusterRequest(
        endpoint_type=kind,
        include_cluster_authorized_operations=operations,
        include_fenced_brokers=fenced,
    )
    step(f"cluster: {label}", version, request)


for version in (0, 1, 2):
    cluster("brokers", version=version)
    cluster("brokers and operations", version=version, operations=True)
cluster("with fenced ones", version=2, fenced=True)
for kind in (0, 2, 3, -1):
    cluster(f"endpoints of type {kind}", version=2, kind=kind)

# ApiVersions


def versions(
    label: str,
    version: int,
    name: str = "ottla",
    software: str = "1.0",
    cluster_id: str | None = None,
    node_id: int = -1,
) -> None:
    request = ApiVersionsRequest(
        client_software_name=name,
        client_software_version=software,
        cluster_id=cluster_id,
        node_id=node_id,
    )
    step(f"versions: {label}", version, request)


for version in range(6):
    versions("good", version)
for name in ("", "a b", "a/b", "a.b-c", "-a", "a-", ".a", "a.", "é", "a" * 300, "1", "a_b"):
    versions(f"software {name[:10]!r}", 3, name=name)
for software in ("", "a b", "1.0-x", "1.", "-1", "1_2"):
    versions(f"software version {software!r}", 4, software=software)
versions("no software", 0, name="")
versions("a cluster, no node", 5, cluster_id="x")
versions("a node, no cluster", 5, node_id=1)
versions("another cluster", 5, cluster_id="x", node_id=1)
versions("an empty cluster", 5, cluster_id="", node_id=1)
versions("node -2, no cluster", 5, node_id=-2)
versions("another cluster, and bad software", 5, name="", cluster_id="x", node_id=1)
