"""Topologies come to the tasks, the internal topics and the complaints of Kafka."""

from broker.groups.streams.configured import configure
from broker.groups.streams.topology import stored_topology
from protocol.error_codes import ErrorCode
from protocol.messages.streams_group_heartbeat import Subtopology, TopicInfo, Topology
from tests.broker.groups.streams.asking import recorded
from tests.broker.groups.streams.questions import answer_topology


def test_kafka_says_the_same_of_topologies() -> None:
    for question, answer in recorded("topologies"):
        assert answer_topology(question) == answer, question


def test_kafka_was_asked_about_every_outcome() -> None:
    answers = [answer for _, answer in recorded("topologies")]
    assert {answer["error"][0] for answer in answers if "error" in answer} >= {
        ErrorCode.STREAMS_INVALID_TOPOLOGY,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
    assert {answer["problem"][0] for answer in answers if "problem" in answer} == {1, 2, 3}
    assert any("configured" in answer and "problem" not in answer for answer in answers)


def test_a_word_count_is_ready_once_its_topics_are_there() -> None:
    told = Topology(
        subtopologies=[
            Subtopology(subtopology_id="0", source_topics=["lines"], repartition_sink_topics=["words"]),
            Subtopology(
                subtopology_id="1",
                repartition_source_topics=[TopicInfo(name="words")],
                state_changelog_topics=[TopicInfo(name="counts")],
            ),
        ]
    )
    topology = stored_topology(told)
    topics = {"lines": 4}
    lacking = configure(topology, 1, topics.get)
    assert not lacking.is_ready
    topics |= {topic.name: topic.partition_count for topic in lacking.missing_topics.values()}
    assert topics == {"lines": 4, "words": 4, "counts": 4}
    ready = configure(topology, 2, topics.get)
    assert ready.is_ready
    assert ready.subtopologies is not None
    assert {name: (of.task_count, of.is_stateful) for name, of in ready.subtopologies.items()} == {
        "0": (4, False),
        "1": (4, True),
    }


def test_a_long_chain_told_backwards_costs_no_round_for_each_link() -> None:
    length = 4000  # with such rounds it would be eight million steps
    links = [
        Subtopology(
            subtopology_id=f"link-{index}",
            repartition_source_topics=[TopicInfo(name=f"topic-{index}")],
            repartition_sink_topics=[f"topic-{index - 1}"] if index else [],
        )
        for index in range(length)
    ]
    first = Subtopology(
        subtopology_id="first", source_topics=["lines"], repartition_sink_topics=[f"topic-{length - 1}"]
    )
    topology = stored_topology(Topology(subtopologies=[*links, first]))
    found = configure(topology, 1, {"lines": 3}.get)
    assert len(found.missing_topics) == length
    assert {topic.partition_count for topic in found.missing_topics.values()} == {3}
