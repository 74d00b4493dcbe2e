"""Consumer groups in a directory that Kafka and we open in turn: each goes on where the other stopped."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from compat.oracle.connection import PATIENCE_SECONDS
from compat.oracle.conversations.consumer_groups import FIRST, SECOND, THIRD, beat, describe, join, leave
from compat.oracle.conversations.group_migration import OLD, old_join, subscription
from compat.oracle.conversations.offsets import commit
from compat.oracle.kafka import KafkaNode, kafka_node
from compat.oracle.names import Names, Origin
from compat.oracle.preparing import Preparing, Topic
from compat.oracle.run import STARTING
from compat.oracle.test_directories import dump, ottla_on
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.schema import Message

pytestmark = pytest.mark.slow

GROUP, PATTERNS, OLD_AND_NEW = "two-members", "patterns", "old-and-new"
GROUPS = (GROUP, PATTERNS, OLD_AND_NEW)


class Client(Preparing):
    """Asks as several members, over one connection."""

    def __init__(self, address: str) -> None:
        super().__init__(Origin(address, "", "", 0), "", Names("", Origin(address, "", "", 0)))

    def well(self, request: Message) -> Any:
        """The answer, which has no error."""
        answer = self.quietly(request)
        assert not answer.error_code, answer
        return answer

    def heart(self, *asked: Any, **how: Any) -> Any:
        return self.well(beat(*asked, **how))

    def ready(self) -> None:
        self.until(
            FindCoordinatorRequest(key_type=0, coordinator_keys=["any"]),
            lambda answer: answer.coordinators[0].error_code not in STARTING,
        )
        self.until(describe("any"), lambda answer: answer.groups[0].error_code not in STARTING)
        self.barrier_topic()

    def picture(self) -> dict[str, Any]:
        """What a broker says of the groups: only who is told first may differ."""
        self.settle_groups()
        told: dict[str, Any] = {}
        for group in self.quietly(describe(*GROUPS)).groups:
            assert not group.error_code, group
            group.members.sort(key=lambda member: member.member_id)
            for member in group.members:
                for assigned in (member.assignment, member.target_assignment):
                    assigned.topic_partitions.sort(key=lambda of: of.topic_id)
                    for topic in assigned.topic_partitions:
                        topic.partitions.sort()
            told[group.group_id] = repr(group)
        return told | self.offsets_of(GROUPS)

    def offsets_of(self, groups: Sequence[str]) -> dict[str, Any]:
        told = {}
        fetch = [OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups]
        for group in self.quietly(OffsetFetchRequest(groups=fetch)).groups:
            told[f"offsets of {group.group_id}"] = {
                (topic.topic_id, place.partition_index): place.committed_offset
                for topic in group.topics
                for place in topic.partitions
            }
        return told

    def topics(self) -> tuple[Topic, Topic]:
        return self.known_topic("t.a"), self.known_topic("t.b")


@contextmanager
def client_of(address: str) -> Iterator[Client]:
    client = Client(address)
    try:
        client.ready()
        yield client
    finally:
        client.close()


def form_groups(client: Client) -> None:
    """Groups in every state that a member can be in."""
    one, other = client.topic("t.a", 4), client.topic("t.b", 2)
    client.quietly(join(GROUP, FIRST, one, other, instance="static", rack="here"))
    client.quietly(commit(GROUP, (one, 0, 5), (other, 1, 7), member=FIRST, generation=2))
    client.quietly(join(PATTERNS, FIRST, regex=r"t\..*"))
    client.quietly(join(OLD_AND_NEW, FIRST, one))
    client.until(describe(PATTERNS), lambda answer: answer.groups[0].group_epoch == 2)
    client.quietly(old_join(OLD_AND_NEW, subscription(one), OLD))
    client.until(beat(PATTERNS, FIRST, 1), lambda answer: answer.member_epoch == 2 or not answer.error_code)
    client.quietly(join(GROUP, SECOND, one, other, assignor="uniform"))
    # The second assignment has to wait for a moment; then the first member must give up.
    client.until(beat(GROUP, FIRST, 2, instance="static"), lambda answer: answer.assignment is not None)


def catch_up(client: Client) -> int:
    """Let the members give up what they must and take what is theirs; returns the epoch they are all at then.

    How many rounds it takes depends on when the broker last computed an assignment.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        client.settle_groups()
        told = client.quietly(describe(GROUP)).groups[0]
        if {member.member_epoch for member in told.members} == {told.group_epoch}:
            return int(told.group_epoch)
        assert time.monotonic() < deadline, str(told)
        for member in told.members:
            meant = {of.topic_id: of.partitions for of in member.target_assignment.topic_partitions}
            keeps = [
                (Topic("", of.topic_id), sorted({*of.partitions}.intersection(meant.get(of.topic_id, ()))))
                for of in member.assignment.topic_partitions
            ]
            client.heart(
                GROUP, member.member_id, member.member_epoch, owned=keeps, instance=member.instance_id
            )


def go_on(client: Client) -> None:
    """The members do as they would have done with the other broker."""
    (one, _) = client.topics()
    client.quietly(commit(GROUP, (one, 0, 6), member=FIRST, generation=catch_up(client)))
    joined = client.quietly(join(GROUP, THIRD, one))
    assert not joined.error_code, joined
    left = client.quietly(leave(GROUP, THIRD))
    assert not left.error_code, left


def taking_turns(folder: Path, first: Callable[[KafkaNode], Any], second: Callable[[KafkaNode], Any]) -> None:
    node = KafkaNode(folder)
    with first(node) as address, client_of(address) as client:
        form_groups(client)
        formed = client.picture()
    with second(node) as address, client_of(address) as client:
        assert client.picture() == formed
        go_on(client)
        went_on = client.picture()
    with first(node) as address, client_of(address) as client:
        assert client.picture() == went_on
        go_on(client)


@contextmanager
def kafka_on(node: KafkaNode) -> Iterator[str]:
    with kafka_node(node.folder) as running:
        yield running.bootstrap


@contextmanager
def us_on(node: KafkaNode) -> Iterator[str]:
    broker = ottla_on(node)
    broker.start()
    try:
        yield node.bootstrap
    finally:
        assert broker.stop() == 0


def test_kafka_goes_on_with_our_groups_and_we_with_its(kafka_jars: Path, tmp_path: Path) -> None:
    taking_turns(tmp_path / "node", us_on, kafka_on)


def test_we_go_on_with_kafka_s_groups_and_it_with_ours(kafka_jars: Path, tmp_path: Path) -> None:
    taking_turns(tmp_path / "node", kafka_on, us_on)


def test_kafka_s_dump_reads_our_groups(kafka_jars: Path, tmp_path: Path) -> None:
    node = KafkaNode(tmp_path / "node")
    with us_on(node) as address, client_of(address) as client:
        form_groups(client)
        client.quietly(leave(PATTERNS, FIRST))
    kinds = set()
    for log in node.data.glob("__consumer_offsets-*/00000000000000000000.log"):
        for line in dump(log, "--offsets-decoder", "--deep-iteration").splitlines():
            if "payload:" in line:
                key = line.partition("key: ")[2].partition(" payload: ")[0]
                kinds.add(json.loads(key)["type"])
    assert kinds >= {"1", "3", "5", "6", "7", "8", "16"}
