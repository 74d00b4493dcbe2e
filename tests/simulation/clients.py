"""Small clients of the simulated cluster: what they do, and what they take note of."""

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from broker.network.call import Address
from broker.network.node_client import NodeClient, NodeUnreachable
from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.batch import RecordBatch, read_batches
from protocol.records.builder import build_batch
from protocol.schema import Message
from tests.simulation.invariants import InvariantBroken
from tests.simulation.ledger import Acknowledged, Partition, Transaction
from tests.simulation.network import HostTransport

if TYPE_CHECKING:
    from tests.simulation.world import World

REQUEST_SECONDS: Final = 3.0
BACK_OFF_SECONDS: Final = 0.1
PAUSE_SECONDS_MAX: Final = 0.5
PRODUCE_TIMEOUT_MS: Final = 1500
FETCH_WAIT_MS: Final = 500
FETCH_VERSION: Final = 17
READ_COMMITTED: Final = 1

TRANSACTION: Final = 1
"""A kind of key of FindCoordinator."""

TRANSACTION_TIMEOUT_MS: Final = 20_000
"""Longer than a history, and shorter than the peace after it: a coordinator that was cut off, and does not
know that another one has the transaction, may refuse its end, and then nobody asks for that again.
"""
END_TXN_VERSION: Final = 5
COMMIT_SHARE: Final = 0.7

OFFSETS_VERSION: Final = 9
"""Of OffsetCommit and OffsetFetch: the last that names topics."""

FETCH_SHARE: Final = 0.3

BROKER_PORT: Final = 9092


class Leadership(NamedTuple):
    """What the metadata say of a partition."""

    node_id: int
    epoch: int
    topic_id: bytes


class Client:
    """A host of its own, with a connection to each node that it has asked."""

    def __init__(self, world: "World", number: int, name: str) -> None:
        self.world = world
        self.name = name
        self.host = f"10.0.1.{number}"
        self.chance = Random(f"{world.seed} {name}")
        self._transport = HostTransport(world.network, self.host)
        self._connections: dict[int, NodeClient] = {}
        self._leaders: dict[Partition, Leadership] = {}
        self._epochs: dict[Partition, int] = {}
        """The latest leader epoch heard of.

        Kafka's clients do not go back to a leader of an older one, who may not know yet that it leads no
        more, and does not know the records of the leaders behind it.
        """

    async def ask(self, node_id: int, request: Message, *, version: int | None = None) -> Any:
        """Raises NodeUnreachable."""
        client = self._connections.get(node_id)
        if client is None:
            address = Address(self.world.nodes[node_id - 1].host, BROKER_PORT)
            client = self._connections[node_id] = NodeClient(
                self._transport, lambda: address, client_id=self.name
            )
        return await client.ask(request, version=version, timeout_seconds=REQUEST_SECONDS)

    async def back_off(self) -> None:
        await trio.sleep(self.chance.uniform(BACK_OFF_SECONDS / 2, BACK_OFF_SECONDS))

    def note(self, line: str) -> None:
        self.world.note(f"{self.name}: {line}")

    def some_node(self) -> int:
        return self.chance.choice(self.world.nodes).id

    async def leader_of(self, partition: Partition) -> Leadership:
        """Who leads the partition, as far as known."""
        while partition not in self._leaders:
            await self._learn(partition[0])
            if partition not in self._leaders:
                await self.back_off()
        return self._leaders[partition]

    async def _learn(self, topic: str) -> None:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        try:
            answer = await self.ask(self.some_node(), request)
        except NodeUnreachable:
            return
        for found in answer.topics:
            for each in found.partitions:
                partition = (topic, each.partition_index)
                if (
                    found.error_code == 0
                    and each.leader_id > 0
                    and each.leader_epoch >= self._epochs.get(partition, 0)
                ):
                    self._epochs[partition] = each.leader_epoch
                    self._leaders[partition] = Leadership(each.leader_id, each.leader_epoch, found.topic_id)

    def forget_leader(self, partition: Partition) -> None:
        self._leaders.pop(partition, None)


class Admin(Client):
    """Makes topics."""

    async def create_topic(
        self, name: str, *, partitions: int, replicas: int, settings: Mapping[str, str]
    ) -> None:
        """Returns when it exists."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replicas,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in settings.items()],
        )
        while True:
            try:
                answer = await self.ask(self.some_node(), CreateTopicsRequest(topics=[topic]))
            except NodeUnreachable as error:
                self.note(f"no answer: {error}")
            else:
                code = answer.topics[0].error_code
                self.note(f"topic {name}: {ErrorCode(code).name}")
                if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                    return
            await self.back_off()

    async def reassign(self, partition: Partition, replicas: list[int]) -> None:
        """Ask for it; that it is not heard, or refused, is no harm."""
        request = AlterPartitionReassignmentsRequest(
            topics=[
                ReassignableTopic(
                    name=partition[0],
                    partitions=[ReassignablePartition(partition_index=partition[1], replicas=replicas)],
                )
            ]
        )
        try:
            answer = await self.ask(self.some_node(), request)
        except NodeUnreachable as error:
            self.note(f"no answer: {error}")
        else:
            self.note(f"reassigns {partition[0]}-{partition[1]} to {replicas}: {answer.error_code}")


class Committer(Client):
    """Commits ever larger offsets of a group, and looks now and then whether the last one is there."""

    def __init__(self, world: "World", number: int, partition: Partition) -> None:
        super().__init__(world, number, f"committer {number}")
        self._group = f"g{number}"
        self._partition = partition
        self._coordinator: int | None = None
        self._tried = 0
        self._committed = -1
        self.is_stopping = False

    async def run(self) -> None:
        while not self.is_stopping:
            if self.chance.random() < FETCH_SHARE:
                await self.look()
            else:
                await self._commit()
            await trio.sleep(self.chance.uniform(0, 2 * PAUSE_SECONDS_MAX))

    async def _ask_coordinator(self, request: Message, version: int) -> Any:
        """None if it is not known, or does not answer."""
        try:
            if self._coordinator is None:
                question = FindCoordinatorRequest(coordinator_keys=[self._group])
                found = (await self.ask(self.some_node(), question)).coordinators[0]
                if found.error_code:
                    return None
                self._coordinator = found.node_id
            return await self.ask(self._coordinator, request, version=version)
        except NodeUnreachable as error:
            self.note(f"no answer of coordinator {self._coordinator}: {error}")
            self._coordinator = None
            return None

    async def _commit(self) -> None:
        topic, index = self._partition
        self._tried += 1
        offset = self._tried
        wanted = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=self._group, topics=[OffsetCommitRequestTopic(name=topic, partitions=[wanted])]
        )
        answer = await self._ask_coordinator(request, OFFSETS_VERSION)
        if answer is None:
            return
        code = ErrorCode(answer.topics[0].partitions[0].error_code)
        self.note(f"commits {offset}: {code.name}")
        if code == ErrorCode.NONE:
            self._committed = offset
        else:
            self._check_retriable(code)

    def _check_retriable(self, code: ErrorCode) -> None:
        self._coordinator = None
        if not code.retriable:
            raise InvariantBroken("groups_are_coordinated", f"{self.name}: {code.name}")

    async def look(self) -> bool:
        """See that no committed offset was lost; False if nobody answered."""
        topic, index = self._partition
        request = OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id=self._group,
                    topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[index])],
                )
            ]
        )
        answer = await self._ask_coordinator(request, OFFSETS_VERSION)
        if answer is None:
            return False
        group = answer.groups[0]
        if group.error_code:
            self._check_retriable(ErrorCode(group.error_code))
            return False
        found = group.topics[0].partitions[0]
        if found.error_code:
            self._check_retriable(ErrorCode(found.error_code))
            return False
        self.note(f"finds {found.committed_offset}")
        if not self._committed <= found.committed_offset <= self._tried:
            raise InvariantBroken(
                "committed_offsets_are_kept",
                f"{self.name} has committed {self._committed}, and finds {found.committed_offset}",
            )
        return True


class Producer(Client):
    """Idempotent and acks=all: sends a batch again until it is acknowledged, and then the next one."""

    def __init__(self, world: "World", number: int, partitions: list[Partition]) -> None:
        super().__init__(world, number, f"producer {number}")
        self._partitions = partitions
        self._sequences = dict.fromkeys(partitions, 0)
        self._sent = 0
        self._identity: tuple[int, int] | None = None
        self.is_stopping = False

    async def run(self) -> None:
        self._identity = await self._identify()
        while not self.is_stopping:
            await self._produce(self.chance.choice(self._partitions))
            await trio.sleep(self.chance.uniform(0, PAUSE_SECONDS_MAX))

    async def _identify(self) -> tuple[int, int]:
        while True:
            try:
                answer = await self.ask(
                    self.some_node(),
                    InitProducerIdRequest(transactional_id=None),
                )
            except NodeUnreachable:
                pass
            else:
                if answer.error_code == 0:
                    self.note(f"is producer {answer.producer_id}/{answer.producer_epoch}")
                    return answer.producer_id, answer.producer_epoch
                if not ErrorCode(answer.error_code).retriable:
                    raise InvariantBroken(
                        "producers_get_ids", f"{self.name}: {ErrorCode(answer.error_code).name}"
                    )
            await self.back_off()

    def _next_values(self, partition: Partition) -> list[bytes]:
        values = []
        for _ in range(self.chance.randint(1, 3)):
            self._sent += 1
            value = b"%s %d" % (self.name.encode(), self._sent)
            self.world.ledger.sent[value] = partition
            values.append(value)
        return values

    async def _produce(self, partition: Partition) -> None:
        assert self._identity is not None
        values = self._next_values(partition)
        producer_id, producer_epoch = self._identity
        batch = build_batch(
            [(self.world.now_ms, None, value, ()) for value in values],
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=self._sequences[partition],
        )
        while True:
            code, offset = await self.produce_once(partition, batch)
            if code == ErrorCode.NONE or code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                break
            self.forget_leader(partition)
            if code is not None and not code.retriable:
                raise InvariantBroken("producers_are_known", f"{self.name} at {partition}: {code.name}")
            await self.back_off()
        self._sequences[partition] += len(values)
        self.note(f"acknowledged {partition[0]}-{partition[1]} {offset} {values}")
        if offset >= 0:
            self.world.watch.acknowledged(self.name, partition, offset, values)
        self.world.ledger.acknowledged.append(Acknowledged(partition, offset, tuple(values)))

    async def produce_once(
        self, partition: Partition, batch: bytearray, transactional_id: str | None = None
    ) -> tuple[ErrorCode | None, int]:
        """The error, None if there is no answer, and the offset."""
        node_id, _, topic_id = await self.leader_of(partition)
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=-1,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=[
                TopicProduceData(
                    name=partition[0],
                    topic_id=topic_id,
                    partition_data=[PartitionProduceData(index=partition[1], records=batch)],
                )
            ],
        )
        try:
            answer = await self.ask(node_id, request)
        except NodeUnreachable as error:
            self.note(f"no answer of node {node_id}: {error}")
            return None, -1
        found = answer.responses[0].partition_responses[0]
        code = ErrorCode(found.error_code)
        if code != ErrorCode.NONE:
            self.note(f"{partition[0]}-{partition[1]} at node {node_id}: {code.name}")
        return code, found.base_offset


class TransactionalProducer(Producer):
    """Produces to one partition or two in each transaction, and commits it, or aborts it.

    Where it cannot know, or must not go on, it takes a new identity, which ends what it has left open.
    """

    def __init__(self, world: "World", number: int, partitions: list[Partition]) -> None:
        super().__init__(world, number, partitions)
        self.name = f"transactional {number}"
        self._transactional_id = f"t{number}"
        self._coordinator: int | None = None
        self._transactions = 0

    async def run(self) -> None:
        while not self.is_stopping:
            if self._identity is None:
                self._identity = await self._identify()
            await self._transact()
            await trio.sleep(self.chance.uniform(0, PAUSE_SECONDS_MAX))

    async def _ask_coordinator(self, request: Message, version: int | None = None) -> Any:
        """None if it is not known, or does not answer."""
        try:
            if self._coordinator is None:
                question = FindCoordinatorRequest(
                    key_type=TRANSACTION, coordinator_keys=[self._transactional_id]
                )
                found = (await self.ask(self.some_node(), question)).coordinators[0]
                if found.error_code:
                    return None
                self._coordinator = found.node_id
            answer = await self.ask(self._coordinator, request, version=version)
        except NodeUnreachable as error:
            self.note(f"no answer of coordinator {self._coordinator}: {error}")
            self._coordinator = None
            return None
        code = ErrorCode(answer.error_code)
        if code != ErrorCode.NONE:
            self.note(f"coordinator {self._coordinator}: {code.name}")
            if code != ErrorCode.CONCURRENT_TRANSACTIONS:
                self._coordinator = None
        return answer

    async def _identify(self) -> tuple[int, int]:
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
        )
        while True:
            answer = await self._ask_coordinator(request)
            if answer is not None:
                if answer.error_code == 0:
                    self.note(f"is producer {answer.producer_id}/{answer.producer_epoch}")
                    self._sequences = dict.fromkeys(self._partitions, 0)
                    return answer.producer_id, answer.producer_epoch
                if not ErrorCode(answer.error_code).retriable:
                    raise InvariantBroken(
                        "producers_get_ids", f"{self.name}: {ErrorCode(answer.error_code).name}"
                    )
            await self.back_off()

    async def _transact(self) -> None:
        self._transactions += 1
        transaction = Transaction(f"{self.name} {self._transactions}")
        ledger = self.world.ledger
        ledger.transactions.append(transaction)
        count = self.chance.randint(1, len(self._partitions))
        for partition in self.chance.sample(self._partitions, count):
            values = self._next_values(partition)
            transaction.values[partition] = values
            ledger.of_transaction.update(dict.fromkeys(values, transaction))
            if not await self._produce_in_transaction(partition, values):
                transaction.outcome = "aborted"  # it has not been asked to be committed, and never will be
                self._identity = None
                return
        await self._end(transaction, is_commit=self.chance.random() < COMMIT_SHARE)

    async def _produce_in_transaction(self, partition: Partition, values: list[bytes]) -> bool:
        assert self._identity is not None
        producer_id, producer_epoch = self._identity
        batch = build_batch(
            [(self.world.now_ms, None, value, ()) for value in values],
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=self._sequences[partition],
            is_transactional=True,
        )
        while True:
            code, _ = await self.produce_once(partition, batch, self._transactional_id)
            if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self._sequences[partition] += len(values)
                return True
            if code is not None and not code.retriable:
                return False
            self.forget_leader(partition)
            await self.back_off()

    async def _end(self, transaction: Transaction, *, is_commit: bool) -> None:
        assert self._identity is not None
        producer_id, producer_epoch = self._identity
        request = EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            committed=is_commit,
        )
        transaction.outcome = "unknown" if is_commit else "aborted"
        self.note(f"{'commits' if is_commit else 'aborts'} {transaction.name}")
        while True:
            answer = await self._ask_coordinator(request, END_TXN_VERSION)
            if answer is not None:
                if answer.error_code == 0:
                    if is_commit:
                        transaction.outcome = "committed"
                        self.note(f"has committed {transaction.name}")
                    self._identity = answer.producer_id, answer.producer_epoch
                    self._sequences = dict.fromkeys(self._partitions, 0)
                    return
                if not ErrorCode(answer.error_code).retriable:
                    self._identity = None
                    return
            await self.back_off()


class Reader(Client):
    """Reads one partition from its beginning, only what is committed."""

    def __init__(self, world: "World", number: int, partition: Partition) -> None:
        super().__init__(world, number, f"reader {number}")
        self.partition = partition
        self.position = 0
        self._values = world.ledger.reader(self.name).setdefault(partition, [])

    async def run(self) -> None:
        while True:
            await self._fetch_once()

    async def _fetch_once(self) -> None:
        node_id, leader_epoch, topic_id = await self.leader_of(self.partition)
        wanted = FetchPartition(
            partition=self.partition[1],
            current_leader_epoch=leader_epoch,
            fetch_offset=self.position,
            partition_max_bytes=1 << 20,
        )
        request = FetchRequest(
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=READ_COMMITTED,
            topics=[FetchTopic(topic=self.partition[0], topic_id=topic_id, partitions=[wanted])],
        )
        try:
            answer = await self.ask(node_id, request, version=FETCH_VERSION)
        except NodeUnreachable as error:
            self.note(f"no answer of node {node_id}: {error}")
            self.forget_leader(self.partition)
            await self.back_off()
            return
        code = ErrorCode(answer.error_code)
        if code == ErrorCode.NONE:
            found = answer.responses[0].partitions[0]
            code = ErrorCode(found.error_code)
            if code == ErrorCode.NONE:
                self._take(found)
                return
        self.note(f"{code.name} of node {node_id} at offset {self.position}")
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise InvariantBroken(
                "the_high_watermark_never_goes_back", f"{self.name} stands at {self.position}, out of range"
            )
        self.forget_leader(self.partition)
        await self.back_off()

    def _take(self, found: PartitionData) -> None:
        aborted: dict[int, list[int]] = {}
        for each in sorted(found.aborted_transactions or (), key=lambda each: each.first_offset):
            aborted.setdefault(each.producer_id, []).append(each.first_offset)
        in_aborted: dict[int, None] = {}
        for batch in read_batches(found.records or b""):
            firsts = aborted.get(batch.producer_id, [])
            while firsts and firsts[0] <= batch.last_offset:
                firsts.pop(0)
                in_aborted[batch.producer_id] = None
            if batch.next_offset <= self.position:
                continue
            if batch.is_control:
                in_aborted.pop(batch.producer_id, None)
            elif not (batch.is_transactional and batch.producer_id in in_aborted):
                self._read(batch, [record.value or b"" for record in batch.records()])
            self.position = batch.next_offset

    def _read(self, batch: RecordBatch, values: list[bytes]) -> None:
        base_offset = batch.base_offset
        self.note(f"reads {self.partition[0]}-{self.partition[1]} {base_offset} {values}")
        self.world.watch.reader_sees(self.name, self.partition, batch, values)
        self._values += ((base_offset + number, value) for number, value in enumerate(values))
