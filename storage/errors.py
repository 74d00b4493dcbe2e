"""What storage refuses, or cannot do: facts only.  ``broker/errors.py`` gives each its code."""

import errno

OUT_OF_DESCRIPTORS = frozenset((errno.EMFILE, errno.ENFILE))
"""Neither this process nor the machine can open another file: nothing is wrong with the disk."""


class StorageError(Exception):
    """Base of everything that storage raises on purpose."""


class OffsetOutOfRange(StorageError):
    """An offset outside the log; all three are facts at the moment of asking."""

    def __init__(self, asked: int, log_start: int, log_end: int) -> None:
        super().__init__(f"offset {asked} is outside the log, which holds {log_start} to {log_end}")
        self.asked = asked
        self.log_start = log_start
        self.log_end = log_end


class BatchTooLarge(StorageError):
    """A batch that no segment could hold (``segment.bytes``)."""

    def __init__(self, size_bytes: int, segment_bytes: int) -> None:
        super().__init__(f"{size_bytes} bytes do not fit a segment of at most {segment_bytes} bytes")
        self.size_bytes = size_bytes
        self.segment_bytes = segment_bytes


class OffsetNotNext(StorageError):
    """Replicated batches must continue the log; ``base_offset`` lies below its end."""

    def __init__(self, base_offset: int, log_end: int) -> None:
        super().__init__(f"a batch at offset {base_offset} cannot follow a log that ends at {log_end}")
        self.base_offset = base_offset
        self.log_end = log_end


class ProducerError(StorageError):
    """What an idempotent or transactional producer sent does not follow what it sent before."""

    def __init__(self, text: str, producer_id: int, producer_epoch: int) -> None:
        super().__init__(text)
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch


class OutOfOrderSequence(ProducerError):
    """A gap, or a batch older than the five that are remembered."""

    def __init__(self, producer_id: int, producer_epoch: int, sequence: int, last_sequence: int) -> None:
        super().__init__(
            f"producer {producer_id} with epoch {producer_epoch} sent sequence {sequence}, "
            f"but its last one was {last_sequence}",
            producer_id,
            producer_epoch,
        )
        self.sequence = sequence
        self.last_sequence = last_sequence


class InvalidProducerEpoch(ProducerError):
    """A newer instance of this producer has written here since."""

    def __init__(self, producer_id: int, producer_epoch: int, current_epoch: int) -> None:
        super().__init__(
            f"producer {producer_id} sent epoch {producer_epoch}, but the last one seen is {current_epoch}",
            producer_id,
            producer_epoch,
        )
        self.current_epoch = current_epoch


class InvalidTransactionState(ProducerError):
    """A batch outside any transaction from a producer whose transaction is open in this log."""

    def __init__(self, producer_id: int, producer_epoch: int, transaction_start: int) -> None:
        super().__init__(
            f"producer {producer_id} must write transactionally: "
            f"its transaction is open since offset {transaction_start}",
            producer_id,
            producer_epoch,
        )
        self.transaction_start = transaction_start


class UnverifiedTransaction(ProducerError):
    """A batch that would open a transaction of which the coordinator may know nothing (KIP-890)."""

    def __init__(self, producer_id: int, producer_epoch: int) -> None:
        super().__init__(
            f"producer {producer_id} has no transaction here that the coordinator knows of",
            producer_id,
            producer_epoch,
        )


class TransactionCoordinatorFenced(ProducerError):
    """A marker from a coordinator whose successor has written one already."""

    def __init__(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, current_epoch: int
    ) -> None:
        super().__init__(
            f"a marker for producer {producer_id} has coordinator epoch {coordinator_epoch}, "
            f"but the last one seen is {current_epoch}",
            producer_id,
            producer_epoch,
        )
        self.coordinator_epoch = coordinator_epoch
        self.current_epoch = current_epoch


class DiskFailure(StorageError):
    """The file system refused; ``cause`` says why.

    After a failed write the log is as before it.  After a failed fsync nobody knows what is on
    disk, and asking again proves nothing: the process must not acknowledge anything any more.
    """

    def __init__(self, path: str, action: str, cause: OSError) -> None:
        super().__init__(f"cannot {action} {path}: {cause.strerror or cause}")
        self.path = path
        self.action = action
        self.cause = cause

    @property
    def is_of_reading(self) -> bool:
        """Nothing was to be changed: what is on disk is what it was."""
        return self.action == "read"

    @property
    def leaves_doubt(self) -> bool:
        """Of a flush: an fsync has failed, and nobody knows what is on disk.  Else it can be tried again."""
        return self.action == "flush" and not self.lacks_descriptor

    @property
    def lacks_descriptor(self) -> bool:
        """A file could not even be opened, for want of a descriptor: the same may work later."""
        return self.cause.errno in OUT_OF_DESCRIPTORS


class CorruptFile(StorageError):
    """A file of a log directory does not hold what its name promises."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class CorruptLog(CorruptFile):
    """Record data inside a segment is damaged at ``position`` (bytes)."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(path, f"at byte {position}: {reason}")
        self.position = position


class TornBatch(CorruptLog):
    """The file ends inside the batch at ``position``."""


class UnsupportedFormat(CorruptFile):
    """Written by a Kafka older or newer than this code reads; nothing is wrong with the file."""


class DirectoryLocked(StorageError):
    """Another process holds the log directory."""

    def __init__(self, path: str) -> None:
        super().__init__(f"log directory {path} is in use by another process")
        self.path = path


class UnexpectedDirectory(StorageError):
    """A folder inside a log directory whose name is not that of a replica."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is not named <topic>-<partition>: a log directory must hold nothing but replicas"
        )
        self.path = path


class DuplicateReplica(StorageError):
    """Two folders hold the same replica, and nothing says which one is right."""

    def __init__(self, path: str, other: str) -> None:
        super().__init__(f"{path} and {other} hold the same partition: remove the one that is not wanted")
        self.path = path
        self.other = other


class NoDirectory(StorageError):
    """A replica may lie in a directory that is offline, or no directory takes new ones."""

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"no log directory can take partition {partition} of {topic}")
        self.topic = topic
        self.partition = partition


class ReplicaExists(StorageError):
    """A replica is to be created where one lies."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} exists already")
        self.path = path


class ReplicaNotFound(StorageError):
    """This log directory has no such replica."""

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"there is no replica of partition {partition} of {topic} here")
        self.topic = topic
        self.partition = partition


class InconsistentTopicId(StorageError):
    """A replica on disk belongs to an older topic of the same name."""

    def __init__(self, path: str, stored: bytes | None, expected: bytes) -> None:
        super().__init__(
            f"{path} belongs to topic id {stored.hex() if stored else 'none'}, not {expected.hex()}"
        )
        self.path = path
        self.stored = stored
        self.expected = expected
