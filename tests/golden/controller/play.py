"""Requests of brokers that do not exist to a controller, with the answers and the records they bring about.

Two controllers can be held against each other that way, decision by decision.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

from broker.metadata.features import SUPPORTED_FEATURES
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from protocol.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.schema import Message, Struct
from protocol.stored import metadata_records as stored
from protocol.uuids import ZERO_UUID

FAR_AHEAD = 1 << 40
"""An offset of the metadata log that is beyond all there is."""

PRESENT = -2
"""Stands for the epoch that the controller knows."""


CONTROLLER_ID = 1
"""Of the controller that plays."""


class Subject(Protocol):
    """A controller that plays its part."""

    cluster_id: str

    async def ask(self, request: Message, answer: type[Message], version: int) -> Any:
        """Its answer."""

    async def new_records(self) -> Sequence[tuple[Message, int]]:
        """What it has committed since it was asked this last, with the records' versions."""


class Partition:
    """A partition as the records describe it, as far as requests must know it."""

    def __init__(self, record: stored.PartitionRecord) -> None:
        self.replicas = record.replicas
        self.leader = record.leader
        self.leader_epoch = record.leader_epoch
        self.partition_epoch = record.partition_epoch
        self.is_recovering = False
        self._removing: list[int] = []
        self.adding: list[int] = []

    @property
    def is_reassigning(self) -> bool:
        return bool(self._removing or self.adding)

    def change(self, record: stored.PartitionChangeRecord) -> None:
        self.partition_epoch += 1
        if record.leader != -2:
            self.leader = record.leader
            self.leader_epoch += 1
        if record.replicas is not None:
            self.replicas = record.replicas
        if record.removing_replicas is not None:
            self._removing = record.removing_replicas
        if record.adding_replicas is not None:
            self.adding = record.adding_replicas
        if record.leader_recovery_state != -1:
            self.is_recovering = record.leader_recovery_state == 1


class Play:
    """One performance.  ``lines`` is what two of them are compared by."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.lines: list[Any] = []
        self.asked: Message | None = None
        """The last request."""
        self.epochs: dict[int, int] = {}
        """Of brokers, by id."""
        self.topics: dict[str, bytes] = {}
        self.partitions: dict[tuple[bytes, int], Partition] = {}
        self._names_of_epochs: dict[int, str] = {-1: "none"}
        self._incarnations: dict[int, int] = {}

    async def scene(self, name: str) -> None:
        self.lines.append({"scene": name})

    async def ask(self, request: Message, version: int) -> Any:
        """Ask, and write down the answer and the records behind it."""
        self.asked = request
        module = import_module(type(request).__module__)
        answer_type = getattr(module, type(request).__name__.replace("Request", "Response"))
        answer = await self.subject.ask(request, answer_type, version)
        records = list(await self.subject.new_records())
        for record, _ in records:
            self._note(record)
        line: dict[str, Any] = {"answer": self._brief(answer)}
        told = self._tell(records)
        if told:
            line["records"] = told
        self.lines.append(line)
        return answer

    # What brokers say

    async def register(self, broker_id: int, version: int = 4, *, again: bool = False, **changes: Any) -> Any:
        """A new incarnation registers, or the present one ``again``."""
        if not again:
            self._incarnations[broker_id] = self._incarnations.get(broker_id, 0) + 1
        fields = {
            "broker_id": broker_id,
            "cluster_id": self.subject.cluster_id,
            "incarnation_id": number(1000 * broker_id + self._incarnations[broker_id]),
            "listeners": [Listener(name="PLAINTEXT", host=f"broker{broker_id}", port=9092)],
            "features": features(),
            "rack": None,
            "log_dirs": [directory(broker_id)],
            **changes,
        }
        return await self.ask(BrokerRegistrationRequest(**fields), version)

    async def beat(self, broker_id: int, version: int = 2, *, epoch: int = PRESENT, **wishes: Any) -> Any:
        fields = {
            "broker_epoch": self.epochs.get(broker_id, 0) if epoch == PRESENT else epoch,
            "current_metadata_offset": FAR_AHEAD,
            **wishes,
        }
        return await self.ask(BrokerHeartbeatRequest(broker_id=broker_id, **fields), version)

    async def come(self, *broker_ids: int, **changes: Any) -> None:
        """Register and serve."""
        for broker_id in broker_ids:
            await self.register(broker_id, **changes)
            await self.beat(broker_id)

    async def make(self, topic: str, *replicas: Sequence[int], **settings: str) -> None:
        """A topic; each of ``replicas`` is one partition's.  Settings have ``__`` for dots."""
        wanted = CreatableTopic(
            name=topic,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreatableReplicaAssignment(partition_index=index, broker_ids=list(broker_ids))
                for index, broker_ids in enumerate(replicas)
            ],
            configs=[
                CreatableTopicConfig(name=name.replace("__", "."), value=value)
                for name, value in settings.items()
            ],
        )
        await self.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7)

    async def propose(
        self,
        topic: str,
        isr: Sequence[int],
        *,
        index: int = 0,
        broker_id: int | None = None,
        version: int = 3,
        newer_leader_epoch: int = 0,
        newer_partition_epoch: int = 0,
        recovering: bool = False,
        epochs: Sequence[int] | None = None,
    ) -> Any:
        """The leader proposes an in-sync set."""
        topic_id = self.topics[topic]
        partition = self.partitions[topic_id, index]
        leader = partition.leader if broker_id is None else broker_id
        proposed = AlterPartitionRequestPartitionData(
            partition_index=index,
            leader_epoch=partition.leader_epoch + newer_leader_epoch,
            partition_epoch=partition.partition_epoch + newer_partition_epoch,
            leader_recovery_state=int(recovering),
        )
        if version >= 3:
            known = [self.epochs.get(member, 0) for member in isr] if epochs is None else epochs
            proposed.new_isr_with_epochs = [
                BrokerState(broker_id=member, broker_epoch=epoch)
                for member, epoch in zip(isr, known, strict=True)
            ]
        else:
            proposed.new_isr = list(isr)
        request = AlterPartitionRequest(
            broker_id=leader,
            broker_epoch=self.epochs.get(leader, 0),
            topics=[AlterPartitionRequestTopicData(topic_id=topic_id, partitions=[proposed])],
        )
        return await self.ask(request, version)

    # What came of it

    def _note(self, record: Message) -> None:
        match record:
            case stored.RegisterBrokerRecord():
                self.epochs[record.broker_id] = record.broker_epoch
                self._names_of_epochs.setdefault(
                    record.broker_epoch, f"epoch {self._incarnations.get(record.broker_id)}"
                )
            case stored.TopicRecord():
                self.topics[record.name] = record.topic_id
            case stored.RemoveTopicRecord():
                self.partitions = {
                    place: partition
                    for place, partition in self.partitions.items()
                    if place[0] != record.topic_id
                }
            case stored.PartitionRecord():
                self.partitions[record.topic_id, record.partition_id] = Partition(record)
            case stored.PartitionChangeRecord():
                self.partitions[record.topic_id, record.partition_id].change(record)

    def _tell(self, records: Sequence[tuple[Message, int]]) -> list[Any]:
        """Neighbouring changes of partitions come in the order of a hash table."""
        told: list[Any] = []
        changes: list[Any] = []
        for record, version in records:
            if isinstance(record, stored.NoOpRecord) or _is_its_own(record):
                continue
            line = {f"{type(record).__name__} {version}": self._brief(record)}
            if isinstance(record, stored.PartitionChangeRecord):
                changes.append(line)
                continue
            told += sorted(changes, key=str)
            changes.clear()
            told.append(line)
        return told + sorted(changes, key=str)

    def _brief(self, struct: Struct) -> dict[str, Any]:
        """What is not at its default, with names instead of numbers that chance has made."""
        brief = {}
        for field in struct.declared_fields:
            if field.name in NOT_COMPARED:
                continue
            value = getattr(struct, field.name)
            told = self._value(field.name, value)
            default = None if field.default is None else self._value(field.name, field.default)
            if told not in (default, [], {}) or (told == [] and default is None and value is not None):
                brief[field.name] = told
        return brief

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, Struct):
            return self._brief(value)
        if isinstance(value, list):
            if value and isinstance(value[0], Struct):
                rows = [self._brief(row) for row in value]
                return sorted(rows, key=str) if name in UNORDERED else rows
            return [self._value(name, each) for each in value]
        if isinstance(value, bytes):
            for topic, topic_id in self.topics.items():
                if topic_id == value:
                    return f"id of {topic}"
            if value == ZERO_UUID:
                return "no id"
            return f"number {int.from_bytes(value, 'big')}" if value < SMALL_NUMBERS else "an id"
        if name == "broker_epoch":
            return self._names_of_epochs.get(value, "unknown")
        return value


SMALL_NUMBERS = (1 << 40).to_bytes(16, "big")


def _is_its_own(record: Message) -> bool:
    """The controller's own registration comes in its own time."""
    return isinstance(record, stored.RegisterControllerRecord) and record.controller_id == CONTROLLER_ID


NOT_COMPARED = ("configs", "throttle_time_ms")
"""The settings of a new topic are another play's."""

UNORDERED = ("features", "replica_election_results", "partition_result", "topics")


def features(**changes: tuple[int, int]) -> list[Feature]:
    """What a broker supports: what ours does, unless told otherwise (``__`` stands for dots)."""
    supported = {**SUPPORTED_FEATURES, **{name.replace("__", "."): span for name, span in changes.items()}}
    return [
        Feature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in supported.items()
    ]


def number(value: int) -> bytes:
    return value.to_bytes(16, "big")


def directory(broker_id: int, index: int = 0) -> bytes:
    """The id of a log directory."""
    return number(1_000_000 + 100 * broker_id + index)
