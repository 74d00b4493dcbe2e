"""Topologies as members tell them, and as a group keeps them."""

import pytest

from broker.groups.streams.topology import (
    check_changelogs,
    check_is_supported,
    is_same_topology,
    stored_topology,
)
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.streams_group_heartbeat import Subtopology, TopicInfo, Topology


def test_regular_expressions_are_refused() -> None:
    check_is_supported(Topology(subtopologies=[Subtopology(source_topics=["a"])]))
    with pytest.raises(KafkaError) as refused:
        check_is_supported(Topology(subtopologies=[Subtopology(source_topic_regex=["a.*"])]))
    assert refused.value.code == ErrorCode.INVALID_REQUEST


def test_changelogs_have_no_number_of_partitions_of_their_own() -> None:
    check_changelogs(Topology(subtopologies=[Subtopology(state_changelog_topics=[TopicInfo(name="log")])]))
    with pytest.raises(KafkaError) as refused:
        check_changelogs(
            Topology(
                subtopologies=[Subtopology(state_changelog_topics=[TopicInfo(name="log", partitions=2)])]
            )
        )
    assert (refused.value.code, refused.value.message) == (
        ErrorCode.STREAMS_INVALID_TOPOLOGY,
        "Changelog topic log must have an undefined partition count, but it is set to 2.",
    )


@pytest.mark.parametrize(
    "told",
    [
        Topology(epoch=-1),
        Topology(subtopologies=[Subtopology(subtopology_id="0"), Subtopology(subtopology_id="0")]),
    ],
)
def test_what_kafka_cannot_keep_is_refused(told: Topology) -> None:
    with pytest.raises(KafkaError) as refused:
        stored_topology(told)
    assert refused.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_the_order_of_subtopologies_makes_no_difference() -> None:
    one, other = Subtopology(subtopology_id="0"), Subtopology(subtopology_id="1", source_topics=["a", "b"])
    first = stored_topology(Topology(epoch=1, subtopologies=[one, other]))
    assert is_same_topology(first, stored_topology(Topology(epoch=1, subtopologies=[other, one])))
    assert not is_same_topology(first, stored_topology(Topology(epoch=2, subtopologies=[one, other])))
    changed = Subtopology(subtopology_id="1", source_topics=["b", "a"])
    assert not is_same_topology(first, stored_topology(Topology(epoch=1, subtopologies=[one, changed])))
