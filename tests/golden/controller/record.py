"""Record anew what a controller of Apache Kafka 4.4.0 decides: ``python -m tests.golden.controller.record``.

Needs Java and the jars (see ``compat.oracle``); starts a node of its own.
"""

import json
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import trio

from compat.oracle.kafka import KafkaNode
from compat.probe import split_address
from protocol.error_codes import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from protocol.records.batch import read_batches
from protocol.schema import Message
from protocol.stored.metadata_records import decode_metadata_record
from tests.golden.controller.chance import perform_by_chance
from tests.golden.controller.play import Play
from tests.golden.controller.scenes import perform
from tests.support.raw_client import RawClient

TRANSCRIPT = Path(__file__).resolve().parent / "transcript.json"

METADATA_TOPIC = (1).to_bytes(16, "big")

SEEDS = (1, 2, 3, 4)
"""More are played by hand; Kafka's controller falls over some (31, 51)."""

SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "broker.heartbeat.interval.ms": "60000",
    "broker.session.timeout.ms": "86400000",
    "unclean.leader.election.interval.ms": "86400000",
}
"""So that nothing happens by itself during the play."""


class NotLeading(Exception):
    """The controller does not lead its quorum any more: it has met a fault of its own."""


class KafkaFell(Exception):
    """Kafka's controller could not go on with the play."""

    def __init__(self, play: Play) -> None:
        super().__init__(f"after {len(play.lines)} lines")
        self.play = play
        """As far as it came."""


class KafkaController:
    """A controller of Kafka's, asked over a connection, whose log is read over another."""

    def __init__(self, address: str, cluster_id: str) -> None:
        self.cluster_id = cluster_id
        self._client = RawClient(split_address(address), timeout_s=30)
        self._reader = RawClient(split_address(address), timeout_s=30)
        self._offset = 0
        self._epoch = 0
        self._leader_epoch = 0

    async def ask(self, request: Message, answer: type[Message], version: int) -> Any:
        return self._client.ask(request, answer, version)

    async def new_records(self) -> Sequence[tuple[Message, int]]:
        """Everything is committed that an answer was given for, and the log is short."""
        found: list[tuple[Message, int]] = []
        while True:
            partition = self._fetch()
            for batch in read_batches(memoryview(bytes(partition.records or b""))):
                if batch.base_offset < self._offset:
                    continue
                if not batch.is_control:
                    found += [decode_metadata_record(record.value or b"") for record in batch.records()]
                self._offset, self._epoch = batch.next_offset, batch.partition_leader_epoch
            if self._offset >= partition.high_watermark:
                return found

    def _fetch(self) -> Any:
        wanted = FetchPartition(
            partition=0,
            fetch_offset=self._offset,
            last_fetched_epoch=self._epoch,
            current_leader_epoch=self._leader_epoch,
            partition_max_bytes=8 << 20,
        )
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=9999),
            max_wait_ms=0,
            max_bytes=8 << 20,
            topics=[FetchTopic(topic_id=METADATA_TOPIC, partitions=[wanted])],
        )
        answer = self._reader.ask(request, FetchResponse, 17)
        (partition,) = answer.responses[0].partitions
        if partition.error_code == ErrorCode.FENCED_LEADER_EPOCH:
            self._leader_epoch = partition.current_leader.leader_epoch
            return self._fetch()
        if partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            raise NotLeading
        assert partition.error_code == 0, partition
        return partition


def record(act: Callable[[Play], Awaitable[None]], *format_arguments: str) -> Play:
    """What a new controller of Kafka's, formatted so, makes of it; raises ``KafkaFell``."""
    with tempfile.TemporaryDirectory() as folder:
        node = KafkaNode(Path(folder), SETTINGS, roles="controller", node_id=1)
        node.format(*format_arguments)
        node.start()
        try:
            lines = (node.data / "meta.properties").read_text().splitlines()
            cluster_id = next(line for line in lines if line.startswith("cluster.id=")).partition("=")[2]
            subject = KafkaController(node.controller, cluster_id)
            play = Play(subject)

            async def run() -> None:
                await subject.new_records()
                await act(play)

            trio.run(run)
        except NotLeading:
            raise KafkaFell(play) from None
        finally:
            node.stop()
    return play


async def perform_everything(play: Play) -> None:
    """Some scenes that chance made up, and those that were thought of."""
    for seed in SEEDS:
        await perform_by_chance(play, seed)
    await perform(play)


def main() -> None:
    play = record(perform_everything)
    text = ",\n".join(json.dumps(line, ensure_ascii=False) for line in play.lines)
    TRANSCRIPT.write_text(f"[\n{text}\n]\n", encoding="utf-8")
    sys.stdout.write(f"{len(play.lines)} lines\n")


if __name__ == "__main__":
    main()
