"""How the broker's own failures reach a peer: as a number of the protocol, or as a closed connection."""

from typing import Final

from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError, EncodeError, KafkaError
from storage import errors as storage_errors

__all__ = [
    "CloseConnection",
    "DecodeError",
    "EncodeError",
    "ErrorCode",
    "KafkaError",
    "StartupError",
    "error_code_of",
]


class CloseConnection(Exception):
    """Raised by a handler: this request has no answer, and the connection ends.

    Requests before it are still answered.  ``reason`` is for the log; ``None`` closes without a line, for
    closings that are the protocol's ordinary course.
    """

    def __init__(self, reason: str | None) -> None:
        super().__init__(reason)
        self.reason = reason


class StartupError(Exception):
    """Why the broker cannot start; the text is one line for the user."""


STORAGE_ERROR_CODES: Final[dict[type[storage_errors.StorageError], ErrorCode]] = {
    storage_errors.OffsetOutOfRange: ErrorCode.OFFSET_OUT_OF_RANGE,
    storage_errors.BatchTooLarge: ErrorCode.RECORD_LIST_TOO_LARGE,
    storage_errors.OffsetNotNext: ErrorCode.UNKNOWN_SERVER_ERROR,
    storage_errors.OutOfOrderSequence: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    storage_errors.InvalidProducerEpoch: ErrorCode.INVALID_PRODUCER_EPOCH,
    storage_errors.InvalidTransactionState: ErrorCode.INVALID_TXN_STATE,
    storage_errors.UnverifiedTransaction: ErrorCode.INVALID_TXN_STATE,
    storage_errors.TransactionCoordinatorFenced: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    storage_errors.DiskFailure: ErrorCode.KAFKA_STORAGE_ERROR,
    storage_errors.CorruptFile: ErrorCode.KAFKA_STORAGE_ERROR,
    storage_errors.CorruptLog: ErrorCode.CORRUPT_MESSAGE,
    storage_errors.TornBatch: ErrorCode.CORRUPT_MESSAGE,
    storage_errors.UnsupportedFormat: ErrorCode.KAFKA_STORAGE_ERROR,
    storage_errors.DirectoryLocked: ErrorCode.KAFKA_STORAGE_ERROR,
    storage_errors.UnexpectedDirectory: ErrorCode.KAFKA_STORAGE_ERROR,
    storage_errors.DuplicateReplica: ErrorCode.KAFKA_STORAGE_ERROR,
    storage_errors.NoDirectory: ErrorCode.KAFKA_STORAGE_ERROR,
    storage_errors.ReplicaExists: ErrorCode.KAFKA_STORAGE_ERROR,
    storage_errors.ReplicaNotFound: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    storage_errors.InconsistentTopicId: ErrorCode.INCONSISTENT_TOPIC_ID,
}
"""What a client is told.  Every concrete error of storage has its line, and a test checks that."""


def error_code_of(error: BaseException) -> ErrorCode:
    """The code under which ``error`` goes on the wire; UNKNOWN_SERVER_ERROR for what nobody expected."""
    if isinstance(error, KafkaError):
        return error.code
    if isinstance(error, storage_errors.DiskFailure) and error.is_of_reading:
        return ErrorCode.UNKNOWN_SERVER_ERROR  # as Kafka has it
    if isinstance(error, storage_errors.StorageError):
        return STORAGE_ERROR_CODES.get(type(error), ErrorCode.UNKNOWN_SERVER_ERROR)
    return ErrorCode.UNKNOWN_SERVER_ERROR
