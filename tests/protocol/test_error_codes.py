"""Numbers of errors, as other nodes send them."""

from protocol.error_codes import ErrorCode


def test_one_of_a_later_kafka_is_an_error_that_nobody_knows() -> None:
    assert ErrorCode(0) is ErrorCode.NONE
    assert ErrorCode(30_000) is ErrorCode.UNKNOWN_SERVER_ERROR
