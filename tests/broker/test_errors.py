from collections.abc import Iterator

import pytest

from broker.errors import STORAGE_ERROR_CODES, ErrorCode, KafkaError, error_code_of
from storage.errors import DiskFailure, OffsetOutOfRange, ProducerError, StorageError


def descendants(base: type[StorageError]) -> Iterator[type[StorageError]]:
    for derived in base.__subclasses__():
        yield derived
        yield from descendants(derived)


def test_every_error_of_storage_has_a_code() -> None:
    families = {StorageError, ProducerError}  # never raised themselves
    raised = {error for error in descendants(StorageError) if error.__module__ == "storage.errors"} - families
    assert raised == STORAGE_ERROR_CODES.keys()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KafkaError(ErrorCode.INVALID_REQUEST), ErrorCode.INVALID_REQUEST),
        (OffsetOutOfRange(5, 0, 3), ErrorCode.OFFSET_OUT_OF_RANGE),
        (DiskFailure("/log", "write", OSError(28, "full")), ErrorCode.KAFKA_STORAGE_ERROR),
        (ZeroDivisionError(), ErrorCode.UNKNOWN_SERVER_ERROR),
        (OSError(5, "input/output error"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_errors_have_the_codes_of_the_protocol(error: Exception, code: ErrorCode) -> None:
    assert error_code_of(error) == code
