"""Names of the files and folders that Kafka keeps in a log directory."""

LOCK = ".lock"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"

LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
QUORUM_STATE = "quorum-state"

METADATA_TOPIC = "__cluster_metadata"
METADATA_REPLICA = "__cluster_metadata-0"
REMOTE_INDEX_CACHE = "remote-log-index-cache"

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
PRODUCER_SNAPSHOT = ".snapshot"
SNAPSHOT = ".checkpoint"
SNAPSHOT_PART = ".checkpoint.part"

SEGMENT_FILES = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)
"""What belongs to one segment; a producer snapshot with the segment's base goes with them."""

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"

DELETE_MARK = "-delete"
STRAY_MARK = "-stray"
FUTURE_MARK = "-future"

OFFSET_MAX = (1 << 63) - 1
EPOCH_MAX = (1 << 31) - 1

NAME_SIZE_MAX = 255
"""What file systems allow for a name, in bytes."""


def offset_name(offset: int) -> str:
    """The 20 digits that segment files are named after."""
    return f"{offset:020d}"


def parse_offset_name(name: str, suffix: str) -> int | None:
    """The offset in a file name like ``00000000000000000042.log``, or None for another name.

    No file of a log has a number for a name that is too large for an offset, or is written otherwise:
    ``42.log`` is somebody else's.
    """
    digits = name.removesuffix(suffix)
    if len(digits) == len(name) or len(digits) != 20 or not (digits.isascii() and digits.isdigit()):
        return None
    offset = int(digits)
    return offset if offset <= OFFSET_MAX else None


def parse_snapshot_name(name: str) -> tuple[int, int] | None:
    """End offset and epoch of a snapshot of the metadata log; None if it is no finished snapshot's name."""
    offset, dash, epoch = name.removesuffix(SNAPSHOT).partition("-")
    if not name.endswith(SNAPSHOT) or not dash or len(offset) != 20 or len(epoch) != 10:
        return None
    if not (offset + epoch).isascii() or not (offset + epoch).isdigit():
        return None
    if int(offset) > OFFSET_MAX or int(epoch) > EPOCH_MAX:
        return None
    return int(offset), int(epoch)


def replica_name(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def parse_replica_name(name: str) -> tuple[str, int] | None:
    """Topic and partition of a replica's folder; None if the name is not of that form."""
    topic, dash, digits = name.rpartition("-")
    if not dash or not topic or not (digits.isascii() and digits.isdigit()):
        return None
    return topic, int(digits)


def marked_name(topic: str, partition: int, unique: str, mark: str) -> str:
    """The folder name of a replica that is to be deleted, or that nobody asked for.

    ``unique`` is 32 hex digits, so that the same topic can be deleted again and again.
    """
    rest = f"-{partition}.{unique}{mark}"
    return topic[: NAME_SIZE_MAX - len(rest)] + rest


def future_name(topic: str, partition: int, unique: str) -> str:
    """The folder name of a copy that is to take a replica's place.

    Not cut short, so that the topic can be told from it: it may be longer than file systems allow.
    """
    return f"{topic}-{partition}.{unique}{FUTURE_MARK}"


def parse_marked_name(name: str, mark: str) -> tuple[str, int] | None:
    """Topic (perhaps cut short) and partition of a folder with ``mark``; None for any other name."""
    if not name.endswith(mark):
        return None
    replica, dot, unique = name.removesuffix(mark).rpartition(".")
    if not dot or not unique:
        return None
    return parse_replica_name(replica)
