"""The cluster as the metadata log describes it at one offset: immutable, replaced and never changed."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from protocol.uuids import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY

if TYPE_CHECKING:
    from protocol.stored.metadata_records import (
        AccessControlEntryRecord,
        DelegationTokenRecord,
        UserScramCredentialRecord,
    )

NO_LEADER: Final = -1
"""The leader of a partition that has none."""


class ResourceType(IntEnum):
    """What a ConfigRecord is about; the numbers are those of the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class SecurityProtocol(IntEnum):
    """How an endpoint is spoken to; the numbers are those of the wire."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3


class LeaderRecoveryState(IntEnum):
    """Whether a leader that was elected uncleanly has yet to find out what it lacks (KIP-704)."""

    RECOVERED = 0
    RECOVERING = 1


class Endpoint(NamedTuple):
    """One listener of a node, by the address it advertises."""

    name: str
    host: str
    port: int
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT


class PartitionImage(NamedTuple):
    """One partition's replicas and who of them leads.

    ``directories`` runs parallel to ``replicas``.  ``leader_epoch`` counts leaderships,
    ``partition_epoch`` every change.  ``eligible_leader_replicas`` and ``last_known_elr`` are
    KIP-966's.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[bytes, ...] = ()
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    def directory_of(self, broker_id: int) -> bytes:
        """The id of the log directory that holds ``broker_id``'s replica; ``ValueError`` if it has none."""
        return self.directories[self.replicas.index(broker_id)]


class TopicImage(NamedTuple):
    """A topic; ``partitions`` is indexed by partition number."""

    name: str
    id: bytes
    partitions: tuple[PartitionImage, ...]


class BrokerImage(NamedTuple):
    """A broker's registration.

    ``epoch`` is the offset of its RegisterBrokerRecord.  ``features`` maps each name to the lowest
    and highest level that the broker understands.
    """

    id: int
    epoch: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: Mapping[str, tuple[int, int]]
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    directories: tuple[bytes, ...] = ()
    cordoned_directories: tuple[bytes, ...] | None = None
    is_migrating_zk_broker: bool = False

    @property
    def is_active(self) -> bool:
        """Whether the broker may lead partitions and take new replicas."""
        return not self.fenced and not self.in_controlled_shutdown

    def endpoint(self, listener: str) -> Endpoint | None:
        """The address of the listener of this name, if the broker has one."""
        for endpoint in self.endpoints:
            if endpoint.name == listener:
                return endpoint
        return None

    def has_online(self, directory: bytes) -> bool:
        """Whether a replica in this log directory can be served; unknown and unassigned ones count."""
        if directory in DIRECTORIES_WITHOUT_PLACE:
            return True
        if not self.directories:  # registered by a broker that did not say where it stores
            return directory != LOST_DIRECTORY
        return directory in self.directories


class ControllerImage(NamedTuple):
    """A controller's registration (KIP-919)."""

    id: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: Mapping[str, tuple[int, int]]
    zk_migration_ready: bool = False


QuotaEntity = tuple[tuple[str, str | None], ...]
"""Pairs of entity type and name, sorted; the name None stands for the type's default."""

NO_CONFIGS: Final[Mapping[str, str]] = MappingProxyType({})

DIRECTORIES_WITHOUT_PLACE: Final = frozenset((MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY))
"""The replica is somewhere on the broker, or will be."""

METADATA_VERSION: Final = "metadata.version"
ELIGIBLE_LEADER_REPLICAS_VERSION: Final = "eligible.leader.replicas.version"


class MetadataImage:
    """Everything that committed records say, up to ``offset`` (inclusive; -1 before the first).

    Nothing in it may be changed: ``broker.metadata.replay`` makes the next one.  ``epoch`` and
    ``timestamp_ms`` are those of the batch that holds ``offset``.  ``topic_names_by_collision_key``
    finds names which differ only in ``.`` and ``_``; names without either are not in it.
    """

    __slots__ = (
        "acls",
        "brokers",
        "cluster_id",
        "configs",
        "controllers",
        "delegation_tokens",
        "epoch",
        "features",
        "next_producer_id",
        "offset",
        "quotas",
        "scram_credentials",
        "timestamp_ms",
        "topic_names_by_collision_key",
        "topics",
        "topics_by_id",
    )

    def __init__(
        self,
        *,
        cluster_id: str,
        offset: int,
        epoch: int,
        timestamp_ms: int,
        features: Mapping[str, int],
        brokers: Mapping[int, BrokerImage],
        controllers: Mapping[int, ControllerImage],
        topics: Mapping[str, TopicImage],
        topics_by_id: Mapping[bytes, TopicImage],
        topic_names_by_collision_key: Mapping[str, tuple[str, ...]],
        configs: Mapping[tuple[int, str], Mapping[str, str]],
        quotas: Mapping[QuotaEntity, Mapping[str, float]],
        next_producer_id: int,
        acls: "Mapping[bytes, AccessControlEntryRecord]",
        scram_credentials: "Mapping[tuple[str, int], UserScramCredentialRecord]",
        delegation_tokens: "Mapping[str, DelegationTokenRecord]",
    ) -> None:
        self.cluster_id = cluster_id
        self.offset = offset
        self.epoch = epoch
        self.timestamp_ms = timestamp_ms
        self.features = features
        self.brokers = brokers
        self.controllers = controllers
        self.topics = topics
        self.topics_by_id = topics_by_id
        self.topic_names_by_collision_key = topic_names_by_collision_key
        self.configs = configs
        self.quotas = quotas
        self.next_producer_id = next_producer_id
        self.acls = acls
        self.scram_credentials = scram_credentials
        self.delegation_tokens = delegation_tokens

    def __repr__(self) -> str:
        return (
            f"MetadataImage(offset {self.offset}, epoch {self.epoch}, {len(self.brokers)} brokers, "
            f"{len(self.topics)} topics)"
        )

    @property
    def metadata_version(self) -> int:
        """The finalized level of metadata.version; 0 before the log has set one."""
        return self.features.get(METADATA_VERSION, 0)

    @property
    def eligible_leader_replicas_enabled(self) -> bool:
        """Whether a shrinking in-sync set leaves eligible leaders behind (KIP-966)."""
        return self.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0

    def topic_id(self, name: str) -> bytes | None:
        """The id of the topic, or None if there is none of this name."""
        topic = self.topics.get(name)
        return None if topic is None else topic.id

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        """The partition, or None if the topic or its number is unknown."""
        found = self.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]

    def config(self, kind: ResourceType, name: str) -> Mapping[str, str]:
        """The dynamic settings of one resource; empty if it has none."""
        return self.configs.get((kind, name), NO_CONFIGS)

    def topic_config(self, name: str) -> Mapping[str, str]:
        """The settings made for this topic alone."""
        return self.configs.get((ResourceType.TOPIC, name), NO_CONFIGS)

    def is_alive(self, broker_id: int) -> bool:
        """Whether the cluster hears from the broker.  Never true of -1, which stands for no leader."""
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.fenced

    def alive_brokers(self) -> Iterable[BrokerImage]:
        """The brokers that clients may be sent to, by id."""
        return [broker for _, broker in sorted(self.brokers.items()) if not broker.fenced]

    def parts(self) -> dict[str, Any]:
        """Every part by its name, for the constructor; offset, epoch and timestamp included."""
        return {name: getattr(self, name) for name in self.__slots__}


def empty_image(cluster_id: str) -> MetadataImage:
    """The image before the first record."""
    return MetadataImage(
        cluster_id=cluster_id,
        offset=-1,
        epoch=-1,
        timestamp_ms=-1,
        features={},
        brokers={},
        controllers={},
        topics={},
        topics_by_id={},
        topic_names_by_collision_key={},
        configs={},
        quotas={},
        next_producer_id=0,
        acls={},
        scram_credentials={},
        delegation_tokens={},
    )


def collision_key(topic: str) -> str:
    """What two topic names must not share if either holds a ``.`` or a ``_`` (metric names merge them)."""
    return topic.replace(".", "_")


def has_collision_characters(topic: str) -> bool:
    return "." in topic or "_" in topic
