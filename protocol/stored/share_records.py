"""Records of ``__share_group_state``: snapshots of a share partition, and updates between them."""

from protocol.primitives import INT8, INT16, INT32, INT64, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class ShareSnapshotKey(Message, api_key=0, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")
    topic_id: bytes = wire(UUID, "0", default=ZERO_UUID)
    partition: int = wire(INT32, "0", default=0)


class StateBatch(Struct):
    first_offset: int = wire(INT64, "0+", default=0)
    last_offset: int = wire(INT64, "0+", default=0)
    delivery_state: int = wire(INT8, "0+", default=0)
    delivery_count: int = wire(INT16, "0+", default=0)


class ShareSnapshotValue(Message, api_key=0, versions="0", flexible="0+"):
    snapshot_epoch: int = wire(INT32, "0+", default=0)
    state_epoch: int = wire(INT32, "0+", default=0)
    leader_epoch: int = wire(INT32, "0+", default=0)
    start_offset: int = wire(INT64, "0+", default=0)
    delivery_complete_count: int = wire(INT32, "0+", default=-1, tag=0, tagged="0+")
    create_timestamp: int = wire(INT64, "0+", default=0)
    write_timestamp: int = wire(INT64, "0+", default=0)
    state_batches: list[StateBatch] = wire(Array(StateBatch), "0+", factory=list)


class ShareUpdateKey(Message, api_key=1, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")
    topic_id: bytes = wire(UUID, "0", default=ZERO_UUID)
    partition: int = wire(INT32, "0", default=0)


class ShareUpdateValue(Message, api_key=1, versions="0", flexible="0+"):
    snapshot_epoch: int = wire(INT32, "0+", default=0)
    leader_epoch: int = wire(INT32, "0+", default=0)
    start_offset: int = wire(INT64, "0+", default=0)
    delivery_complete_count: int = wire(INT32, "0+", default=-1, tag=0, tagged="0+")
    state_batches: list[StateBatch] = wire(Array(StateBatch), "0+", factory=list)


def _by_type(suffix: str) -> dict[int, type[Message]]:
    classes = [
        value for value in globals().values() if isinstance(value, type) and issubclass(value, Message)
    ]
    return {record.api_key: record for record in classes if record.__name__.endswith(suffix)}


KEY_TYPES = _by_type("Key")
"""The class of each record type's key."""

VALUE_TYPES = _by_type("Value")
"""The class of each record type's value."""
