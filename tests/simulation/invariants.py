"""What must hold after every event, whatever has happened; each has a name.

They hold under these assumptions: topics have three replicas and ``min.insync.replicas`` 2, elections are
clean, producers ask for acks=all; processes may be killed at any time and in any number.  Power is lost by
one node at a time (min ISR - 1), when all replicas are in sync, and until they are again nobody else is
killed: after an unclean stop of all that were in sync the last leader leads again, and may be the one which
has lost records (KIP-966).  Where each record is fsynced, power may be lost at any time.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from broker.metadata.image import NO_LEADER
from protocol.records.batch import RecordBatch, read_batch, read_batches
from storage.partition_log import PartitionLog
from tests.simulation.ledger import Partition

if TYPE_CHECKING:
    from broker.metadata.image import MetadataImage, PartitionImage
    from broker.partitions.leader import Leader
    from tests.simulation.clients import Reader
    from tests.simulation.node import Node
    from tests.simulation.world import World

READ_BYTES = 1 << 20


class InvariantBroken(AssertionError):
    """Which one is the first word of the text."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name


class _Seen:
    """What is known of one open log of one process."""

    __slots__ = ("log", "verified")

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self.verified = 0
        """Below this offset its batches are those of everybody."""


class Watch:
    """Looks at all processes between two events, and remembers what it has seen."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.leaders: dict[tuple[bytes, int, int], int] = {}
        """Topic id, partition and leader epoch: who led."""
        self.committed: dict[Partition, dict[int, bytes]] = {}
        """Batches below a high watermark that somebody has seen, by their base offsets."""
        self.committed_end: dict[Partition, int] = {}
        self._high_watermarks: dict[tuple[bytes, int, int], int] = {}
        """Of leaders, by topic id, partition and leader epoch."""
        self._latest_epochs: dict[tuple[bytes, int], int] = {}
        """Of leaders that have been seen."""
        self._shared: dict[tuple[bytes, int, int], tuple[int, int]] = {}
        """High watermark and partition epoch of leaders, whose in-sync replicas had all of it."""
        self._logs: dict[tuple[int, int], dict[Partition, _Seen]] = {}
        """By node and incarnation."""
        self._images: dict[tuple[int, int], MetadataImage] = {}
        self._epochs: dict[tuple[int, int], dict[tuple[bytes, int], tuple[int, int]]] = {}
        self._isrs: dict[tuple[bytes, int, int], tuple[int, ...]] = {}
        """What the controller has decided: topic id, partition and partition epoch, and the ISR."""

    def check(self) -> None:
        for node in self._world.nodes:
            if node.services is not None and hasattr(node.services, "partitions"):  # may be on its way up
                self.epochs_grow(node)
                self.one_leader_per_epoch(node)
                self.committed_prefixes_are_identical(node)

    def epochs_grow(self, node: "Node") -> None:
        """In what a process knows of a partition, neither leader epoch nor partition epoch goes back."""
        assert node.services is not None
        image = node.services.image
        key = node.id, node.incarnation
        if self._images.get(key) is image:
            return
        self._images[key] = image
        known = self._epochs.setdefault(key, {})
        for topic in image.topics.values():
            for index, partition in enumerate(topic.partitions):
                epochs = partition.leader_epoch, partition.partition_epoch
                before = known.get((topic.id, index), (-1, -1))
                if epochs[0] < before[0] or epochs[1] < before[1]:
                    raise InvariantBroken(
                        "epochs_grow", f"{topic.name}-{index} at node {node.id}: {before} and then {epochs}"
                    )
                known[topic.id, index] = epochs
                self._same_decision(topic.id, index, partition, node)
                if partition.leader not in (NO_LEADER, *partition.isr):
                    raise InvariantBroken(
                        "only_who_is_in_sync_leads",
                        f"{topic.name}-{index}: leader {partition.leader}, ISR {partition.isr}",
                    )

    def _same_decision(self, topic_id: bytes, index: int, partition: "PartitionImage", node: "Node") -> None:
        """All processes know the same ISR of the same partition epoch."""
        isr = tuple(sorted(partition.isr))
        known = self._isrs.setdefault((topic_id, index, partition.partition_epoch), isr)
        if known != isr:
            raise InvariantBroken(
                "isr_only_from_the_controller",
                f"partition epoch {partition.partition_epoch} has ISR {known}, and at node {node.id} {isr}",
            )

    def one_leader_per_epoch(self, node: "Node") -> None:
        assert node.services is not None
        for leader in node.services.partitions.open_leaders:
            if leader.ended is not None:
                continue
            key = leader.topic_id, leader.partition, leader.leader_epoch
            if key not in self.leaders:
                self.leaders[key] = node.id
                self.a_new_leader_has_all_that_is_committed(node, leader)
            if self.leaders[key] != node.id:
                raise InvariantBroken(
                    "one_leader_per_epoch",
                    f"nodes {self.leaders[key]} and {node.id} lead {leader.topic}-{leader.partition} "
                    f"in epoch {leader.leader_epoch}",
                )
            self.isr_only_from_the_controller(node, leader)
            self.the_high_watermark_never_goes_back(node, leader)
            self.what_is_committed_is_in_all_in_sync_replicas(node, leader)

    def the_high_watermark_never_goes_back(self, node: "Node", leader: "Leader") -> None:
        """While one broker leads.  A new leader may know less for a while, and followers go by it."""
        key = leader.topic_id, leader.partition, leader.leader_epoch
        before = self._high_watermarks.get(key, 0)
        if leader.log.high_watermark < before:
            raise InvariantBroken(
                "the_high_watermark_never_goes_back",
                f"{leader.topic}-{leader.partition} at its leader, node {node.id}, in epoch "
                f"{leader.leader_epoch}: {before}, and then {leader.log.high_watermark}",
            )
        self._high_watermarks[key] = leader.log.high_watermark

    def what_is_committed_is_in_all_in_sync_replicas(self, node: "Node", leader: "Leader") -> None:
        """Any of them may be elected.  While somebody lacks what went with its power, this says nothing."""
        replication = leader.replication
        if replication is None:
            return
        key = leader.topic_id, leader.partition, leader.leader_epoch
        now = leader.log.high_watermark, replication.partition_epoch
        if self._shared.get(key) == now or not self._world.nobody_lacks_records:
            return
        self._shared[key] = now
        for member in self._world.nodes:
            log = self._log(member, leader.topic, leader.partition) if member.id in replication.isr else None
            if log is not None and log.log_end < leader.log.high_watermark:
                raise InvariantBroken(
                    "what_is_committed_is_in_all_in_sync_replicas",
                    f"{leader.topic}-{leader.partition} is committed below {leader.log.high_watermark} at "
                    f"its leader, node {node.id}, and ends at {log.log_end} at node {member.id}, in sync",
                )

    def _log(self, node: "Node", topic: str, partition: int) -> PartitionLog | None:
        if node.services is None or not hasattr(node.services, "partitions"):  # may be on its way up
            return None
        found = (directory.log(topic, partition) for directory in node.services.partitions.directories)
        return next((log for log in found if log is not None), None)

    def a_new_leader_has_all_that_is_committed(self, node: "Node", leader: "Leader") -> None:
        """Unless it learns of its leadership when another one has begun."""
        key = leader.topic_id, leader.partition
        latest = self._latest_epochs.get(key, -1)
        if leader.leader_epoch < latest:
            return
        self._latest_epochs[key] = leader.leader_epoch
        end = self.committed_end.get((leader.topic, leader.partition), 0)
        if leader.log.log_end < end:
            raise InvariantBroken(
                "a_new_leader_has_all_that_is_committed",
                f"node {node.id} leads {leader.topic}-{leader.partition} in epoch {leader.leader_epoch}; its "
                f"log ends at {leader.log.log_end}, and all below {end} was committed",
            )

    def isr_only_from_the_controller(self, node: "Node", leader: "Leader") -> None:
        """A leader takes for in sync only whom the controller's records say; it may wait for others, too."""
        replication = leader.replication
        if replication is None:
            return
        key = leader.topic_id, leader.partition, replication.partition_epoch
        isr = tuple(sorted(replication.isr))
        decided = self._isrs.get(key)
        if decided is None and (decided := self._decided(key)) is None:
            return
        if decided != isr:
            raise InvariantBroken(
                "isr_only_from_the_controller",
                f"{leader.topic}-{leader.partition} in partition epoch {replication.partition_epoch}: leader "
                f"{node.id} has {isr}, and {decided} was decided",
            )

    def _decided(self, key: tuple[bytes, int, int]) -> tuple[int, ...] | None:
        """The ISR of a partition epoch according to the controller itself, which a leader may hear first."""
        topic_id, index, partition_epoch = key
        controller = self._world.nodes[0]
        if not controller.is_ready or controller.services is None:
            return None
        topic = controller.services.image.topics_by_id.get(topic_id)
        if topic is None or index >= len(topic.partitions):
            return None
        partition = topic.partitions[index]
        if partition.partition_epoch == partition_epoch:
            return tuple(sorted(partition.isr))
        if partition.partition_epoch < partition_epoch:
            return ()
        return None

    def committed_prefixes_are_identical(self, node: "Node") -> None:
        """Below the high watermark all replicas hold the same batches, and none ever loses them."""
        assert node.services is not None
        seen = self._logs.setdefault((node.id, node.incarnation), {})
        for directory in node.services.partitions.directories:
            for log in directory.logs:
                partition = log.topic, log.partition
                known = seen.get(partition)
                if known is None or known.log is not log:
                    known = seen[partition] = _Seen(log)
                if log.log_end < known.verified:
                    raise InvariantBroken(
                        "nothing_committed_is_cut_off",
                        f"{log.topic}-{log.partition} of node {node.id} ends at {log.log_end}, and held all "
                        f"that was committed below {known.verified}",
                    )
                if log.high_watermark > known.verified:
                    self._compare(node, log, known)

    def _compare(self, node: "Node", log: PartitionLog, known: _Seen) -> None:
        partition = log.topic, log.partition
        committed = self.committed.setdefault(partition, {})
        end = self.committed_end.get(partition, 0)
        for base_offset, data, next_offset in self._batches(node, log, known.verified, log.high_watermark):
            if base_offset >= end:
                committed[base_offset] = data
                end = self.committed_end[partition] = next_offset
            elif committed.get(base_offset) != data:
                raise InvariantBroken(
                    "committed_prefixes_are_identical",
                    f"{log.topic}-{log.partition} at node {node.id}, offset {base_offset}: "
                    f"{data.hex()} where {committed.get(base_offset, b'').hex()} was committed",
                )
            known.verified = next_offset

    def _batches(
        self, node: "Node", log: PartitionLog, offset: int, upper: int
    ) -> Iterator[tuple[int, bytes, int]]:
        """Reading for this must not meet the faults that are meant for the broker."""
        refusals, node.disk._refusals = node.disk._refusals, []
        try:
            while offset < upper:
                records = log.read(offset, READ_BYTES, upper=upper)
                if records is None:
                    return
                for batch in read_batches(records.read()):
                    if batch.base_offset >= upper:
                        return
                    yield batch.base_offset, bytes(batch.data), batch.next_offset
                    offset = batch.next_offset
        finally:
            node.disk._refusals = refusals

    # What readers see

    def acknowledged(
        self, producer: str, partition: Partition, base_offset: int, values: list[bytes]
    ) -> None:
        """What is acknowledged is committed, and lies where the broker says."""
        data = self.committed.get(partition, {}).get(base_offset)
        found = None if data is None else [record.value for record in read_batch(data).records()]
        if found != values:
            raise InvariantBroken(
                "what_is_acknowledged_is_committed",
                f"{producer}: {values} at {partition}, offset {base_offset}, where {found} is committed",
            )

    def reader_sees(self, reader: str, partition: Partition, batch: RecordBatch, values: list[bytes]) -> None:
        """What a reader gets is committed; nothing of it belongs to a transaction that is not."""
        if self.committed.get(partition, {}).get(batch.base_offset) != bytes(batch.data):
            raise InvariantBroken(
                "readers_see_only_what_is_committed",
                f"{reader} reads {values} at {partition}, offset {batch.base_offset}",
            )
        for value in values:
            transaction = self._world.ledger.of_transaction.get(value)
            if transaction is not None and transaction.outcome in ("open", "aborted"):
                raise InvariantBroken(
                    "transactions_are_atomic",
                    f"{reader} reads {value!r} of {transaction.name}, which is {transaction.outcome}",
                )

    def everything_is_read(self, readers: "Sequence[Reader]") -> bool:
        """Whether all replicas are in sync, and readers have got to the end."""
        ends: dict[Partition, set[int]] = {}
        for node in self._world.nodes:
            if not node.is_ready or node.services is None:
                return False
            for directory in node.services.partitions.directories:
                for log in directory.logs:
                    ends.setdefault((log.topic, log.partition), set()).update(
                        (log.log_end, log.high_watermark)
                    )
        return all(ends.get(reader.partition) == {reader.position} for reader in readers)

    def check_at_the_end(self, readers: "Sequence[Reader]") -> None:
        """When all are up again, and in sync."""
        for reader in readers:
            self.no_acknowledged_record_is_lost(reader)
            self.no_duplicates_and_no_reordering(reader)
        self.transactions_are_atomic(readers)

    def no_acknowledged_record_is_lost(self, reader: "Reader") -> None:
        read = self._world.ledger.read[reader.name][reader.partition]
        offsets = dict(read)
        places = {value: offset for offset, value in read}
        for partition, base_offset, values in self._world.ledger.acknowledged:
            if partition == reader.partition:
                for number, value in enumerate(values):
                    found = (
                        places.get(value, -1) >= 0
                        if base_offset < 0
                        else offsets.get(base_offset + number) == value
                    )
                    if not found:
                        raise InvariantBroken(
                            "no_acknowledged_record_is_lost",
                            f"{value!r} was acknowledged at {partition}, offset {base_offset} + {number}, "
                            f"where {reader.name} reads {offsets.get(base_offset + number)!r}",
                        )

    def no_duplicates_and_no_reordering(self, reader: "Reader") -> None:
        """Of each producer the numbers of its records grow."""
        last: dict[bytes, int] = {}
        for offset, value in self._world.ledger.read[reader.name][reader.partition]:
            producer, _, number = value.rpartition(b" ")
            if int(number) <= last.get(producer, 0):
                raise InvariantBroken(
                    "no_duplicates_and_no_reordering",
                    f"{value!r} at {reader.partition}, offset {offset}, comes behind {last[producer]}",
                )
            last[producer] = int(number)

    def transactions_are_atomic(self, readers: "Sequence[Reader]") -> None:
        """Of a transaction all is read, or nothing; all, if its producer was told that it is committed."""
        read = {
            value for reader in readers for _, value in self._world.ledger.read[reader.name][reader.partition]
        }
        for transaction in self._world.ledger.transactions:
            values = [value for some in transaction.values.values() for value in some]
            count = sum(value in read for value in values)
            if count not in (0, len(values)) or (transaction.outcome == "committed" and not count):
                raise InvariantBroken(
                    "transactions_are_atomic",
                    f"{transaction.name}, which is {transaction.outcome}: {count} of {len(values)} are read",
                )
