"""ApiVersions, DescribeCluster and DescribeTopicPartitions.

Many more kinds of requests, in one version each, stand in ``tests/golden/metadata``.
"""

from compat.oracle.conversation import conversation
from compat.oracle.preparing import NOWHERE
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)

BROKERS, CONTROLLERS = 1, 2


def hello(
    name: str = "oracle", version: str = "1.0", cluster_id: str | None = None, node_id: int = -1
) -> ApiVersionsRequest:
    return ApiVersionsRequest(
        client_software_name=name, client_software_version=version, cluster_id=cluster_id, node_id=node_id
    )


@conversation(ApiKey.API_VERSIONS)
def versions(talk: Talk) -> None:
    talk.ask("good", hello())
    talk.ask("good again", hello())


@conversation(ApiKey.API_VERSIONS, rounds="3+")
def software(talk: Talk) -> None:
    for name in ("", "a b", "-a", "é"):
        talk.ask(f"called {name!r}", hello(name))
    for version in ("", "a b", "1."):
        talk.ask(f"of version {version!r}", hello(version=version))
    talk.ask("after all that", hello())


@conversation(ApiKey.API_VERSIONS, rounds="5+")
def versions_of_another_cluster(talk: Talk) -> None:
    cluster_id = talk.origin.cluster_id
    talk.ask("the right cluster and node", hello(cluster_id=cluster_id, node_id=1))
    talk.ask("another node", hello(cluster_id=cluster_id, node_id=2))
    talk.ask("another cluster", hello(cluster_id="another", node_id=1))
    talk.ask("no node", hello(cluster_id=cluster_id))
    talk.ask("no cluster", hello(node_id=1))


@conversation(ApiKey.API_VERSIONS, rounds="0")
def versions_that_nobody_knows(talk: Talk) -> None:
    for version in (-1, 6, 32_767):
        talk.ask_bytes(f"version {version}", ApiKey.API_VERSIONS, b"", version=version, answer_version=0)
    talk.ask("the connection goes on", hello())


@conversation(ApiKey.DESCRIBE_CLUSTER)
def a_cluster(talk: Talk) -> None:
    talk.ask("brokers", DescribeClusterRequest())
    talk.ask("with operations", DescribeClusterRequest(include_cluster_authorized_operations=True))
    talk.ask("with fenced ones", DescribeClusterRequest(include_fenced_brokers=True))
    for kind in (0, CONTROLLERS, 3):
        talk.ask(f"endpoints of type {kind}", DescribeClusterRequest(endpoint_type=kind))


@conversation(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
def partitions_of_topics(talk: Talk) -> None:
    topic, other = talk.topic("t", 3).name, talk.topic("u").name

    def describe(label: str, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> None:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        )
        talk.ask(label, request)

    describe("one", topic)
    describe("several, in another order", other, topic, NOWHERE.name, topic)
    describe("a bad name", "a b")
    describe("at most two", topic, other, limit=2)
    describe("the rest", topic, other, limit=2, cursor=(topic, 2))
    describe("at most none", topic, limit=0)
    describe("from a negative partition", topic, cursor=(topic, -1))
