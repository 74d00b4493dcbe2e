"""Records of ``__cluster_metadata``.  A class's ``api_key`` is its record type."""

from protocol.errors import DecodeError
from protocol.primitives import (
    BOOL,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID,
    Array,
    Buffer,
    read_unsigned_varint,
    write_unsigned_varint,
)
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class BrokerEndpoint(Struct):
    name: str = wire(STRING, "0+", default="")
    host: str = wire(STRING, "0+", default="")
    port: int = wire(UINT16, "0+", default=0)
    security_protocol: int = wire(INT16, "0+", default=0)


class BrokerFeature(Struct):
    name: str = wire(STRING, "0+", default="")
    min_supported_version: int = wire(INT16, "0+", default=0)
    max_supported_version: int = wire(INT16, "0+", default=0)


class RegisterBrokerRecord(Message, api_key=0, versions="0-4", flexible="0+"):
    broker_id: int = wire(INT32, "0+", default=0)
    is_migrating_zk_broker: bool = wire(BOOL, "2+", default=False)
    incarnation_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    broker_epoch: int = wire(INT64, "0+", default=0)
    end_points: list[BrokerEndpoint] = wire(Array(BrokerEndpoint), "0+", factory=list)
    features: list[BrokerFeature] = wire(Array(BrokerFeature), "0+", factory=list)
    rack: str | None = wire(STRING, "0+", default="", nullable="0+")
    fenced: bool = wire(BOOL, "0+", default=True)
    in_controlled_shutdown: bool = wire(BOOL, "1+", default=False)
    log_dirs: list[bytes] = wire(Array(UUID), "3+", factory=list, tag=0, tagged="3+")
    cordoned_log_dirs: list[bytes] | None = wire(
        Array(UUID), "4+", default=None, nullable="4+", tag=1, tagged="4+"
    )


class UnregisterBrokerRecord(Message, api_key=1, versions="0", flexible="0+"):
    broker_id: int = wire(INT32, "0+", default=0)
    broker_epoch: int = wire(INT64, "0+", default=0)


class TopicRecord(Message, api_key=2, versions="0", flexible="0+"):
    name: str = wire(STRING, "0+", default="")
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)


class PartitionRecord(Message, api_key=3, versions="0-2", flexible="0+"):
    partition_id: int = wire(INT32, "0+", default=-1)
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    replicas: list[int] = wire(Array(INT32), "0+", factory=list)
    isr: list[int] = wire(Array(INT32), "0+", factory=list)
    removing_replicas: list[int] = wire(Array(INT32), "0+", factory=list)
    adding_replicas: list[int] = wire(Array(INT32), "0+", factory=list)
    leader: int = wire(INT32, "0+", default=-1)
    leader_recovery_state: int = wire(INT8, "0+", default=0, tag=0, tagged="0+")
    leader_epoch: int = wire(INT32, "0+", default=-1)
    partition_epoch: int = wire(INT32, "0+", default=-1)
    directories: list[bytes] = wire(Array(UUID), "1+", factory=list)
    eligible_leader_replicas: list[int] | None = wire(
        Array(INT32), "2+", default=None, nullable="2+", tag=1, tagged="2+"
    )
    last_known_elr: list[int] | None = wire(
        Array(INT32), "2+", default=None, nullable="2+", tag=2, tagged="2+"
    )


class ConfigRecord(Message, api_key=4, versions="0", flexible="0+"):
    resource_type: int = wire(INT8, "0+", default=0)
    resource_name: str = wire(STRING, "0+", default="")
    name: str = wire(STRING, "0+", default="")
    value: str | None = wire(STRING, "0+", default="", nullable="0+")


class PartitionChangeRecord(Message, api_key=5, versions="0-2", flexible="0+"):
    partition_id: int = wire(INT32, "0+", default=-1)
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    isr: list[int] | None = wire(Array(INT32), "0+", default=None, nullable="0+", tag=0, tagged="0+")
    leader: int = wire(INT32, "0+", default=-2, tag=1, tagged="0+")
    replicas: list[int] | None = wire(Array(INT32), "0+", default=None, nullable="0+", tag=2, tagged="0+")
    removing_replicas: list[int] | None = wire(
        Array(INT32), "0+", default=None, nullable="0+", tag=3, tagged="0+"
    )
    adding_replicas: list[int] | None = wire(
        Array(INT32), "0+", default=None, nullable="0+", tag=4, tagged="0+"
    )
    leader_recovery_state: int = wire(INT8, "0+", default=-1, tag=5, tagged="0+")
    directories: list[bytes] | None = wire(Array(UUID), "1+", default=None, nullable="1+", tag=8, tagged="1+")
    eligible_leader_replicas: list[int] | None = wire(
        Array(INT32), "2+", default=None, nullable="2+", tag=6, tagged="2+"
    )
    last_known_elr: list[int] | None = wire(
        Array(INT32), "2+", default=None, nullable="2+", tag=7, tagged="2+"
    )


class FenceBrokerRecord(Message, api_key=7, versions="0", flexible="0+"):
    id: int = wire(INT32, "0+", default=0)
    epoch: int = wire(INT64, "0+", default=0)


class UnfenceBrokerRecord(Message, api_key=8, versions="0", flexible="0+"):
    id: int = wire(INT32, "0+", default=0)
    epoch: int = wire(INT64, "0+", default=0)


class RemoveTopicRecord(Message, api_key=9, versions="0", flexible="0+"):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)


class DelegationTokenRecord(Message, api_key=10, versions="0", flexible="0+"):
    owner: str = wire(STRING, "0+", default="")
    requester: str = wire(STRING, "0+", default="")
    renewers: list[str] = wire(Array(STRING), "0+", factory=list)
    issue_timestamp: int = wire(INT64, "0+", default=0)
    max_timestamp: int = wire(INT64, "0+", default=0)
    expiration_timestamp: int = wire(INT64, "0+", default=0)
    token_id: str = wire(STRING, "0+", default="")


class UserScramCredentialRecord(Message, api_key=11, versions="0", flexible="0+"):
    name: str = wire(STRING, "0+", default="")
    mechanism: int = wire(INT8, "0+", default=0)
    salt: bytes = wire(BYTES, "0+", default=b"")
    stored_key: bytes = wire(BYTES, "0+", default=b"")
    server_key: bytes = wire(BYTES, "0+", default=b"")
    iterations: int = wire(INT32, "0+", default=0)


class FeatureLevelRecord(Message, api_key=12, versions="0", flexible="0+"):
    name: str = wire(STRING, "0+", default="")
    feature_level: int = wire(INT16, "0+", default=0)


class EntityData(Struct):
    entity_type: str = wire(STRING, "0+", default="")
    entity_name: str | None = wire(STRING, "0+", default="", nullable="0+")


class ClientQuotaRecord(Message, api_key=14, versions="0", flexible="0+"):
    entity: list[EntityData] = wire(Array(EntityData), "0+", factory=list)
    key: str = wire(STRING, "0+", default="")
    value: float = wire(FLOAT64, "0+", default=0.0)
    remove: bool = wire(BOOL, "0+", default=False)


class ProducerIdsRecord(Message, api_key=15, versions="0", flexible="0+"):
    broker_id: int = wire(INT32, "0+", default=0)
    broker_epoch: int = wire(INT64, "0+", default=-1)
    next_producer_id: int = wire(INT64, "0+", default=0)


class BrokerRegistrationChangeRecord(Message, api_key=17, versions="0-3", flexible="0+"):
    broker_id: int = wire(INT32, "0+", default=0)
    broker_epoch: int = wire(INT64, "0+", default=0)
    fenced: int = wire(INT8, "0+", default=0, tag=0, tagged="0+")
    in_controlled_shutdown: int = wire(INT8, "1+", default=0, tag=1, tagged="1+")
    log_dirs: list[bytes] = wire(Array(UUID), "2+", factory=list, tag=2, tagged="2+")
    cordoned_log_dirs: list[bytes] | None = wire(
        Array(UUID), "3+", default=None, nullable="3+", tag=3, tagged="3+"
    )


class AccessControlEntryRecord(Message, api_key=18, versions="0", flexible="0+"):
    id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    resource_type: int = wire(INT8, "0+", default=0)
    resource_name: str = wire(STRING, "0+", default="")
    pattern_type: int = wire(INT8, "0+", default=0)
    principal: str = wire(STRING, "0+", default="")
    host: str = wire(STRING, "0+", default="")
    operation: int = wire(INT8, "0+", default=0)
    permission_type: int = wire(INT8, "0+", default=0)


class RemoveAccessControlEntryRecord(Message, api_key=19, versions="0", flexible="0+"):
    id: bytes = wire(UUID, "0+", default=ZERO_UUID)


class NoOpRecord(Message, api_key=20, versions="0", flexible="0+"):
    """Has no fields."""


class ZkMigrationStateRecord(Message, api_key=21, versions="0", flexible="0+"):
    zk_migration_state: int = wire(INT8, "0+", default=0)


class RemoveUserScramCredentialRecord(Message, api_key=22, versions="0", flexible="0+"):
    name: str = wire(STRING, "0+", default="")
    mechanism: int = wire(INT8, "0+", default=0)


class BeginTransactionRecord(Message, api_key=23, versions="0", flexible="0+"):
    name: str | None = wire(STRING, "0+", default=None, nullable="0+", tag=0, tagged="0+")


class EndTransactionRecord(Message, api_key=24, versions="0", flexible="0+"):
    """Has no fields."""


class AbortTransactionRecord(Message, api_key=25, versions="0", flexible="0+"):
    reason: str | None = wire(STRING, "0+", default=None, nullable="0+", tag=0, tagged="0+")


class RemoveDelegationTokenRecord(Message, api_key=26, versions="0", flexible="0+"):
    token_id: str = wire(STRING, "0+", default="")


class ControllerEndpoint(Struct):
    name: str = wire(STRING, "0+", default="")
    host: str = wire(STRING, "0+", default="")
    port: int = wire(UINT16, "0+", default=0)
    security_protocol: int = wire(INT16, "0+", default=0)


class ControllerFeature(Struct):
    name: str = wire(STRING, "0+", default="")
    min_supported_version: int = wire(INT16, "0+", default=0)
    max_supported_version: int = wire(INT16, "0+", default=0)


class RegisterControllerRecord(Message, api_key=27, versions="0", flexible="0+"):
    controller_id: int = wire(INT32, "0+", default=0)
    incarnation_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    zk_migration_ready: bool = wire(BOOL, "0+", default=False)
    end_points: list[ControllerEndpoint] = wire(Array(ControllerEndpoint), "0+", factory=list)
    features: list[ControllerFeature] = wire(Array(ControllerFeature), "0+", factory=list)


class ClearElrRecord(Message, api_key=28, versions="0", flexible="0+"):
    topic_name: str = wire(STRING, "0+", default="")


class UnregisterControllerRecord(Message, api_key=29, versions="0", flexible="0+"):
    controller_id: int = wire(INT32, "0+", default=0)


RECORD_TYPES: dict[int, type[Message]] = {
    record.api_key: record
    for record in list(globals().values())
    if isinstance(record, type) and issubclass(record, Message) and record is not Message
}
"""The class of each record type."""

FRAME_VERSION = 1


def encode_metadata_record(record: Message, version: int) -> bytes:
    """The value of a record of ``__cluster_metadata``: frame version, type, version and message."""
    frame = (
        write_unsigned_varint(FRAME_VERSION)
        + write_unsigned_varint(record.api_key)
        + write_unsigned_varint(version)
    )
    return frame + record.encode(version)


def decode_metadata_record(value: Buffer) -> tuple[Message, int]:
    """A record and its version.

    An unknown type or version is a ``DecodeError`` that names it: to skip one silently would
    leave a wrong image of the cluster.
    """
    frame_version, position = read_unsigned_varint(value, 0)
    if frame_version != FRAME_VERSION:
        raise DecodeError(f"a metadata record has frame version {frame_version}")
    record_type, position = read_unsigned_varint(value, position)
    version, position = read_unsigned_varint(value, position)
    record_class = RECORD_TYPES.get(record_type)
    if record_class is None or version not in record_class.versions:
        raise DecodeError(f"metadata record type {record_type} version {version} is unknown")
    record, end = record_class.decode_from(value, position, version)
    if end != len(value):
        raise DecodeError(f"{record_class.__name__} has {len(value) - end} bytes behind its end")
    return record, version
