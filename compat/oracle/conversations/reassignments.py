"""Which brokers shall have the replicas, who of them leads, and who leads the metadata log."""

from collections.abc import Sequence

from compat.oracle.conversation import conversation
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

PREFERRED, UNCLEAN = 0, 1

Moves = Sequence[tuple[int, Sequence[int] | None]]
"""Partitions and their new replicas; None gives a move up."""


def move(
    *topics: tuple[str, Moves], timeout_ms: int = 10_000, grow: bool = True
) -> AlterPartitionReassignmentsRequest:
    return AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms,
        allow_replication_factor_change=grow,
        topics=[
            ReassignableTopic(
                name=name,
                partitions=[
                    ReassignablePartition(
                        partition_index=index, replicas=None if replicas is None else list(replicas)
                    )
                    for index, replicas in moves
                ],
            )
            for name, moves in topics
        ],
    )


@conversation(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
def moving(talk: Talk) -> None:
    topic, other = talk.topic("t", 3).name, talk.topic("u").name
    talk.ask("to where it is", move((topic, [(0, [1])])))
    talk.ask("several", move((topic, [(0, [1]), (2, [1])]), (other, [(0, [1])])))
    talk.ask("to a broker that is not there", move((topic, [(0, [2])])))
    talk.ask("to one more, that is not there", move((topic, [(0, [1, 2])])))
    talk.ask("to the same twice", move((topic, [(0, [1, 1])])))
    talk.ask("to a broker of a negative id", move((topic, [(0, [-1])])))
    talk.ask("to nobody", move((topic, [(0, [])])))
    talk.ask("giving up what there is not", move((topic, [(0, None)])))
    talk.ask("a partition that is not there", move((topic, [(3, [1])])))
    talk.ask("a partition with a negative number", move((topic, [(-1, [1])])))
    talk.ask("giving up a partition that is not there", move((topic, [(3, None)])))
    talk.ask("a topic that is not there", move((talk.name("nowhere"), [(0, [1])])))
    talk.ask("a topic without a name", move(("", [(0, [1])])))
    talk.ask("some good, some bad", move((topic, [(0, [1]), (1, [2]), (9, [1])]), ("?", [(0, [1])])))
    talk.ask("the same partition twice", move((topic, [(0, [1]), (0, [2])])))
    talk.ask("the same topic twice", move((topic, [(0, [1])]), (topic, [(1, None)])))
    talk.ask("no partitions", move((topic, [])))
    talk.ask("no topics", move())
    talk.ask("without time", move((topic, [(0, [1])]), timeout_ms=0))
    talk.ask("with a negative time", move((topic, [(0, [1])]), timeout_ms=-1))
    talk.ask("an internal topic", move(("__consumer_offsets", [(0, [1])])))
    talk.ask("the metadata log", move(("__cluster_metadata", [(0, [1])])))


@conversation(ApiKey.ALTER_PARTITION_REASSIGNMENTS, rounds="1+")
def moving_without_growing(talk: Talk) -> None:
    topic = talk.topic("t", 2).name
    talk.ask("as many", move((topic, [(0, [1])]), grow=False))
    talk.ask("more, that are not there", move((topic, [(0, [1, 2])]), grow=False))
    talk.ask("fewer", move((topic, [(0, [])]), grow=False))
    talk.ask("giving up", move((topic, [(0, None)]), grow=False))


@conversation(ApiKey.LIST_PARTITION_REASSIGNMENTS)
def moves_under_way(talk: Talk) -> None:
    topic = talk.topic("t", 3).name

    def ask(label: str, *topics: tuple[str, list[int]], timeout_ms: int = 10_000) -> None:
        named = [ListPartitionReassignmentsTopics(name=name, partition_indexes=of) for name, of in topics]
        talk.ask(label, ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=named))

    talk.ask("all", ListPartitionReassignmentsRequest(timeout_ms=10_000))
    ask("none")
    ask("of partitions that rest", (topic, [0, 2]))
    ask("of no partition", (topic, []))
    ask("of a partition that is not there", (topic, [3, -1]))
    ask("of a topic that is not there", (talk.name("nowhere"), [0]))
    ask("of the same twice", (topic, [0, 0]), (topic, [0]))
    ask("without time", (topic, [0]), timeout_ms=0)
    ask("with a negative time", (topic, [0]), timeout_ms=-1)


def elect(
    *topics: tuple[str, Sequence[int]], kind: int = PREFERRED, timeout_ms: int = 10_000
) -> ElectLeadersRequest:
    return ElectLeadersRequest(
        election_type=kind,
        topic_partitions=[TopicPartitions(topic=name, partitions=list(of)) for name, of in topics],
        timeout_ms=timeout_ms,
    )


@conversation(ApiKey.ELECT_LEADERS)
def electing(talk: Talk) -> None:
    topic, other = talk.topic("t", 3).name, talk.topic("u").name
    nowhere = talk.name("nowhere")
    talk.ask("who leads already", elect((topic, [0])))
    talk.ask("several", elect((topic, [2, 0]), (other, [0])))
    talk.ask("a partition that is not there", elect((topic, [3, -1])))
    talk.ask("a topic that is not there", elect((nowhere, [0])))
    talk.ask("a topic without a name", elect(("", [0])))
    talk.ask("some good, some bad", elect((topic, [1, 7]), (nowhere, [0, 1])))
    talk.ask("the same twice", elect((topic, [0, 0])))
    talk.ask("no partitions", elect((topic, [])))
    talk.ask("no topics", elect())
    talk.ask("without time", elect((topic, [0]), timeout_ms=0))
    talk.ask("with a negative time", elect((topic, [0]), timeout_ms=-1))


@conversation(ApiKey.ELECT_LEADERS, rounds="1+")
def electing_at_any_price(talk: Talk) -> None:
    topic = talk.topic("t", 2).name
    talk.ask("who leads already", elect((topic, [0, 1]), kind=UNCLEAN))
    talk.ask("a partition that is not there", elect((topic, [2]), kind=UNCLEAN))
    for kind in (2, -1):
        talk.ask(f"of type {kind}", elect((topic, [0, 1]), (talk.name("nowhere"), [0]), kind=kind))


@conversation(ApiKey.ELECT_LEADERS)
def electing_everywhere(talk: Talk) -> None:
    talk.topic("t", 2)
    talk.ask("preferred ones", ElectLeadersRequest(topic_partitions=None, timeout_ms=10_000))
    talk.ask("without time", ElectLeadersRequest(topic_partitions=None, timeout_ms=0))


def quorum(*topics: tuple[str, Sequence[int]]) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        topics=[
            DescribeQuorumRequestTopicData(
                topic_name=name,
                partitions=[DescribeQuorumRequestPartitionData(partition_index=index) for index in of],
            )
            for name, of in topics
        ]
    )


METADATA = "__cluster_metadata"


@conversation(ApiKey.DESCRIBE_QUORUM)
def the_quorum(talk: Talk) -> None:
    topic = talk.topic("t").name
    talk.ask("of the metadata", quorum((METADATA, [0])))
    talk.ask("of another partition of it", quorum((METADATA, [1])))
    talk.ask("of two partitions of it", quorum((METADATA, [0, 1])))
    talk.ask("of it twice", quorum((METADATA, [0]), (METADATA, [0])))
    talk.ask("of no partition of it", quorum((METADATA, [])))
    talk.ask("of another topic", quorum((topic, [0])))
    talk.ask("of both", quorum((METADATA, [0]), (topic, [0])))
    talk.ask("of nothing", quorum())
