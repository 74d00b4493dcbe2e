"""What a Python client library looks like to a scenario.

A driver derives from ``Client``, ``Producer``, ``Consumer`` and ``Admin``.  What its library cannot do
raises ``NotOffered``; administrative calls that it lacks are left as they are here, which says so.  An error
that the broker answered comes out as ``Refused`` with Kafka's code for it.

Nothing here needs more than Python, since old libraries run in an environment of their own.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, NoReturn

if TYPE_CHECKING:
    from compat.scenarios.python.pipeline import Pipeline
    from compat.scenarios.python.share_client import ShareConsumer

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

TIMEOUT_SECONDS = 30.0
"""No call takes longer, whatever the broker does."""

LONG_TIMEOUT_SECONDS = 120.0
"""For calls that carry a hundred thousand records."""

SESSION_MS = 6000
"""How long a member of a group may be silent: the least that brokers allow by default."""

HEARTBEAT_MS = 200
"""How soon a member hears of a rebalance."""

FETCH_WAIT_MS = 100
"""How long a fetch waits at the end of a partition: a library may have others to fetch from meanwhile."""


class Code(IntEnum):
    """Kafka's numbers of the errors that scenarios provoke."""

    OFFSET_OUT_OF_RANGE = 1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    MESSAGE_TOO_LARGE = 10
    INVALID_TOPIC_EXCEPTION = 17
    INVALID_TIMESTAMP = 32
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_CONFIG = 40
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    INVALID_RECORD = 87


class NotOffered(Exception):
    """The library has no way to ask for it; the text says what is missing."""


class Refused(Exception):
    """The broker answered with an error."""

    def __init__(self, code: int, text: str = "") -> None:
        super().__init__(f"error {code}: {text}")
        self.code = code


class CommitFailed(Exception):
    """A group's offsets were not committed; often because the group has rebalanced meanwhile."""


class Partition(NamedTuple):
    topic: str
    number: int


class Record(NamedTuple):
    """A record to produce."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int | None = None
    partition: int | None = None


class Place(NamedTuple):
    """Where the broker says that it put a record.  An offset of -1: it did not say."""

    partition: int
    offset: int


class TakenRecord(NamedTuple):
    """A record as a consumer got it."""

    topic: str
    place: Place
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp_ms: int


class Committed(NamedTuple):
    """A position that a group keeps."""

    offset: int
    metadata: str | None = ""
    """None: the library does not tell."""


class Found(NamedTuple):
    """What a search by time gives."""

    offset: int
    timestamp_ms: int


class Cluster(NamedTuple):
    cluster_id: str
    controller_id: int
    brokers: dict[int, str]
    """``host:port`` by id."""


class PartitionDescription(NamedTuple):
    number: int
    leader: int
    replicas: list[int]
    in_sync: list[int]


class MemberDescription(NamedTuple):
    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    assigned: set[Partition] | None
    """None: the library does not decode it."""


class GroupDescription(NamedTuple):
    state: str
    """In Kafka's spelling: ``Stable``."""
    protocol: str | None
    """The assignor that the members agreed on.  None: the library does not tell."""
    members: list[MemberDescription]


class ProducerState(NamedTuple):
    producer_id: int
    epoch: int
    last_sequence: int


class TransactionDescription(NamedTuple):
    state: str
    """In Kafka's spelling: ``Ongoing``."""
    timeout_ms: int
    partitions: set[Partition]


PartitionsHandler = Callable[[set[Partition]], None]


def not_offered(reason: str) -> NoReturn:
    raise NotOffered(reason)


class Producer(ABC):
    """Produces, waits for what the broker says to it, and is closed in the end."""

    @abstractmethod
    def send(self, topic: str, records: Sequence[Record]) -> list[Place]:
        """Produce all at once, wait for all, and tell the place of each.  Raises Refused."""

    @abstractmethod
    def close(self) -> None: ...


class Fenced(Exception):
    """Another producer has taken over the transactional id."""


class TransactionalProducer(Producer):
    """Writes in transactions; it has its identity already.

    Every call raises Fenced once another producer with the same transactional id has begun, and also if its
    transaction was aborted for it.
    """

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def send_offsets(self, group: str, offsets: Mapping[Partition, int], consumer: "Consumer") -> None:
        """Commit where ``consumer``, a member of the group, goes on, together with the records."""

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def abort(self) -> None: ...


class Consumer(ABC):
    """Takes records from partitions that it is assigned, by itself or by its group."""

    @abstractmethod
    def subscribe(
        self,
        topics: Sequence[str] = (),
        *,
        pattern: str | None = None,
        gained: PartitionsHandler = lambda _: None,
        lost: PartitionsHandler = lambda _: None,
    ) -> None:
        """Join the group for topics, or for all topics whose whole name ``pattern`` matches.

        ``gained`` and ``lost`` are called, during calls of this object only, when the group gives or
        takes away partitions.
        """

    @abstractmethod
    def assign(self, partitions: Collection[Partition]) -> None: ...

    @abstractmethod
    def poll(self, wait_seconds: float = 0.1, records_max: int = 5000) -> list[TakenRecord]:
        """Some records that are there, or that come within the time.  Raises Refused."""

    @abstractmethod
    def seek(self, partition: Partition, offset: int) -> None: ...

    @abstractmethod
    def seek_to_beginning(self, partitions: Collection[Partition]) -> None: ...

    @abstractmethod
    def seek_to_end(self, partitions: Collection[Partition]) -> None: ...

    @abstractmethod
    def position(self, partition: Partition) -> int:
        """Offset of the record that comes next."""

    @abstractmethod
    def pause(self, partitions: Collection[Partition]) -> None: ...

    @abstractmethod
    def resume(self, partitions: Collection[Partition]) -> None: ...

    @abstractmethod
    def commit(self, offsets: Mapping[Partition, Committed] | None = None) -> None:
        """Commit these, or the positions, and wait until that is done.  Raises CommitFailed."""

    @abstractmethod
    def commit_soon(self, offsets: Mapping[Partition, Committed]) -> Callable[[], bool]:
        """Begin to commit.  The function that is given back tells whether the broker has confirmed it."""

    @abstractmethod
    def committed(self, partitions: Collection[Partition]) -> dict[Partition, Committed | None]:
        """What the group has committed; None for a partition without."""

    @abstractmethod
    def bounds(self, partitions: Collection[Partition]) -> dict[Partition, tuple[int, int]]:
        """The first offset and the one after the last of each partition."""

    @abstractmethod
    def find_times(self, times_ms: Mapping[Partition, int]) -> dict[Partition, int | None]:
        """Offset of the first record at or after a time; None if there is none."""

    @abstractmethod
    def partitions_of(self, topic: str) -> set[int]:
        """The numbers of a topic's partitions; none if there is no such topic."""

    @abstractmethod
    def close(self) -> None:
        """Leave the group, if the member is not static, and close all connections."""


class Admin(ABC):
    """The library's administrative calls."""

    def create_topic(
        self,
        name: str,
        partition_count: int = 1,
        settings: Mapping[str, str] | None = None,
        *,
        replication_factor: int = 1,
        validate_only: bool = False,
    ) -> None:
        """Raises Refused, as all calls here do."""
        not_offered("it cannot create topics")

    def delete_topic(self, name: str) -> None:
        not_offered("it cannot delete topics")

    def list_topics(self) -> set[str]:
        not_offered("it cannot list topics")

    def describe_topic(self, name: str) -> list[PartitionDescription]:
        not_offered("it cannot describe topics")

    def describe_topic_by_pages(self, name: str, page_size: int) -> list[list[PartitionDescription]]:
        """With DescribeTopicPartitions, following its cursor."""
        not_offered("it does not know DescribeTopicPartitions")

    def create_partitions(self, topic: str, total_count: int) -> None:
        not_offered("it cannot add partitions")

    def describe_cluster(self) -> Cluster:
        not_offered("it cannot describe the cluster")

    def describe_settings(self, kind: str, name: str) -> dict[str, str | None]:
        """All settings of a ``topic`` or a ``broker``."""
        not_offered("it cannot describe settings")

    def replace_settings(self, topic: str, settings: Mapping[str, str]) -> None:
        """With AlterConfigs: what is not named returns to its default."""
        not_offered("it does not know AlterConfigs")

    def change_settings(
        self,
        kind: str,
        name: str,
        *,
        put: Mapping[str, str] | None = None,
        remove: Collection[str] = (),
        append: Mapping[str, str] | None = None,
    ) -> None:
        """With IncrementalAlterConfigs."""
        not_offered("it does not know IncrementalAlterConfigs")

    def list_config_resources(self) -> dict[str, set[str]]:
        """Names of what has settings, by ``topic``, ``broker``, …"""
        not_offered("it does not know ListConfigResources")

    def list_groups(self) -> set[str]:
        not_offered("it cannot list groups")

    def describe_group(self, group: str) -> GroupDescription:
        not_offered("it cannot describe groups")

    def delete_group(self, group: str) -> None:
        not_offered("it cannot delete groups")

    def remove_member(self, group: str, instance_id: str) -> None:
        not_offered("it cannot remove members of groups")

    def group_offsets(self, group: str) -> dict[Partition, Committed]:
        """All that a group has committed."""
        not_offered("it cannot list a group's offsets")

    def alter_group_offsets(self, group: str, offsets: Mapping[Partition, int]) -> None:
        not_offered("it cannot alter a group's offsets")

    def delete_group_offsets(self, group: str, partitions: Collection[Partition]) -> None:
        not_offered("it cannot delete a group's offsets")

    def delete_records(self, before: Mapping[Partition, int]) -> dict[Partition, int]:
        """Delete what is below an offset (-1: everything); the new first offsets."""
        not_offered("it cannot delete records")

    def find_offsets(self, partition: Partition) -> dict[str, Found]:
        """What ListOffsets finds for ``earliest``, ``latest`` and ``max-timestamp``.

        Also for ``earliest-local`` and ``latest-tiered``, if the library knows these.
        """
        not_offered("its admin client cannot look up offsets")

    def log_sizes(self, topic: str) -> dict[int, int]:
        """Bytes that each partition of a topic takes on disk."""
        not_offered("it cannot describe log directories")

    def describe_producers(self, partition: Partition) -> list[ProducerState]:
        not_offered("it cannot describe producers")

    def list_group_kinds(self) -> dict[str, str]:
        """``Classic``, ``Consumer``, ``Share`` or ``Streams`` by the group's name."""
        not_offered("it does not tell of what kind a group is")

    def describe_share_group(self, group: str) -> GroupDescription:
        """Without a protocol."""
        not_offered("it cannot describe share groups")

    def share_group_offsets(self, group: str) -> dict[Partition, int]:
        """Where a share group goes on: the first offset of each partition that is not done."""
        not_offered("it cannot list a share group's offsets")

    def alter_share_group_offsets(self, group: str, offsets: Mapping[Partition, int]) -> None:
        not_offered("it cannot alter a share group's offsets")

    def delete_share_group_offsets(self, group: str, topic: str) -> None:
        not_offered("it cannot delete a share group's offsets")

    def delete_share_group(self, group: str) -> None:
        not_offered("it cannot delete share groups")

    def list_transactions(self) -> dict[str, str]:
        """The state of each transactional id."""
        not_offered("it cannot list transactions")

    def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        not_offered("it cannot describe transactions")

    def fence_producer(self, transactional_id: str) -> None:
        """Take a transactional id away from whoever has it."""
        not_offered("it cannot fence producers")

    def abort_transaction(self, partition: Partition) -> None:
        """Abort the transaction that is open in a partition, with WriteTxnMarkers."""
        not_offered("it cannot abort a transaction of others")

    def api_versions(self) -> dict[int, tuple[int, int]]:
        """First and last version of each API that the broker announces."""
        not_offered("it does not tell the broker's API versions")

    @abstractmethod
    def close(self) -> None: ...


class Client(ABC):
    """A client library.  Each call opens its own connections."""

    name: str
    version: str

    @abstractmethod
    def producer(
        self,
        address: str,
        *,
        acks: str = "all",
        codec: str = "none",
        idempotent: bool = False,
        linger_ms: int = 5,
        batch_bytes_max: int | None = None,
        request_bytes_max: int | None = None,
    ) -> Producer:
        """A producer that puts keys where Java's producer does.

        ``acks`` is ``none``, ``leader`` or ``all``, ``codec`` one of ``CODECS``; the sizes are the
        library's own limits.
        """

    def transactional_producer(
        self, address: str, transactional_id: str, *, timeout_ms: int = 60_000
    ) -> TransactionalProducer:
        not_offered("it has no transactions")

    def pipeline(
        self, address: str, transactional_id: str, group: str, topic: str, *, new_protocol: bool = False
    ) -> "Pipeline":
        """A member of ``group`` that reads what is committed of ``topic``, and produces in transactions."""
        from compat.scenarios.python.pipeline import PipelineOfTwo

        producer = self.transactional_producer(address, transactional_id)
        consumer = self.consumer(address, group=group, committed_only=True, new_protocol=new_protocol)
        consumer.subscribe([topic])
        return PipelineOfTwo(group, consumer, producer)

    @abstractmethod
    def consumer(
        self,
        address: str,
        *,
        group: str | None = None,
        reset: str = "earliest",
        auto_commit: bool = False,
        instance_id: str | None = None,
        cooperative: bool = False,
        new_protocol: bool = False,
        committed_only: bool = False,
        fetch_bytes_max: int | None = None,
        metadata_age_ms: int | None = None,
        may_create_topics: bool | None = None,
    ) -> Consumer:
        """A consumer.

        ``reset`` is ``earliest``, ``latest`` or ``none``, ``fetch_bytes_max`` counts per partition.  With
        ``new_protocol`` the broker assigns the partitions, as KIP-848 has it.  With ``may_create_topics``
        None the library does as it likes.
        """

    def share_consumer(
        self, address: str, group: str, *, explicit: bool = False, records_max: int | None = None
    ) -> "ShareConsumer":
        """A member of a share group.

        With ``records_max`` no poll gives more, nor does the broker hand out more at a time.
        """
        not_offered("it has no share consumer")

    @abstractmethod
    def admin(self, address: str) -> Admin: ...
