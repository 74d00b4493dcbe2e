"""What the oracle's conversations do not wait for: intervals that pass, clients that are forgotten."""

import pytest

from broker.telemetry import clients as module
from broker.telemetry.clients import Client, ClientTelemetry, Delivery
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.records.compression import Compression, compress

NOW_MS = 1_700_000_000_000
INTERVAL_MS = 300_000
ONE, OTHER = bytes(range(16)), bytes(range(1, 17))


def hear_of(telemetry: ClientTelemetry, client_id: bytes = ONE, now_ms: int = NOW_MS) -> tuple[Client, bool]:
    return telemetry.hear_of(client_id, {"client_id": "c"}, now_ms)


def outcome(
    telemetry: ClientTelemetry, client: Client, now_ms: int, **delivery: int | bool | bytes
) -> ErrorCode:
    """Of a delivery, or of asking if there is none."""
    try:
        if delivery:
            given = {"subscription_id": client.subscription_id, "compression_type": 0, "metrics": b"metrics"}
            telemetry.deliver(client, Delivery(**{**given, "is_last": False, **delivery}), now_ms)  # type: ignore[arg-type]
        else:
            telemetry.ask(client, now_ms)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_a_client_may_ask_once_an_interval() -> None:
    telemetry = ClientTelemetry(1000)
    client, _ = hear_of(telemetry)
    assert outcome(telemetry, client, NOW_MS) == ErrorCode.NONE
    assert outcome(telemetry, client, NOW_MS + INTERVAL_MS - 1) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert outcome(telemetry, client, NOW_MS + INTERVAL_MS) == ErrorCode.NONE


def test_and_deliver_once_after_it_has_asked_and_then_once_an_interval() -> None:
    telemetry = ClientTelemetry(1000)
    client, _ = hear_of(telemetry)
    assert outcome(telemetry, client, NOW_MS) == ErrorCode.NONE
    assert outcome(telemetry, client, NOW_MS + 1, metrics=bytes(1000)) == ErrorCode.NONE
    assert outcome(telemetry, client, NOW_MS + INTERVAL_MS, metrics=b"m") == (
        ErrorCode.THROTTLING_QUOTA_EXCEEDED
    )
    assert outcome(telemetry, client, NOW_MS + INTERVAL_MS + 1, metrics=b"m") == ErrorCode.NONE
    assert outcome(telemetry, client, NOW_MS + INTERVAL_MS + 2, is_last=True) == ErrorCode.NONE
    assert outcome(telemetry, client, NOW_MS + INTERVAL_MS + 3, is_last=True) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("delivery", "code", "may_ask"),
    [
        ({"subscription_id": 7}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID, True),
        ({"compression_type": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, True),
        ({"metrics": bytes(1001)}, ErrorCode.TELEMETRY_TOO_LARGE, False),
        ({"metrics": b"no zstd", "compression_type": 4}, ErrorCode.INVALID_RECORD, False),
    ],
)
def test_who_has_to_ask_again_may(delivery: dict[str, int | bytes], code: ErrorCode, may_ask: bool) -> None:
    telemetry = ClientTelemetry(1000)
    client, _ = hear_of(telemetry)
    assert outcome(telemetry, client, NOW_MS) == ErrorCode.NONE
    assert outcome(telemetry, client, NOW_MS, **delivery) == code
    again = ErrorCode.NONE if may_ask else ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert outcome(telemetry, client, NOW_MS + 1) == again


@pytest.mark.parametrize("codec", list(Compression))
def test_metrics_must_be_what_their_codec_makes_and_not_too_many_bytes(codec: Compression) -> None:
    """Though nobody receives them."""

    def delivered(metrics: bytes) -> ErrorCode:
        telemetry = ClientTelemetry(1000)
        client, _ = hear_of(telemetry)
        return outcome(telemetry, client, NOW_MS, metrics=metrics, compression_type=codec)

    assert delivered(b"") == ErrorCode.NONE
    assert delivered(compress(codec, bytes(1000))) == ErrorCode.NONE
    if codec is not Compression.NONE:
        assert delivered(compress(codec, bytes(1001))) == ErrorCode.INVALID_RECORD
        assert delivered(bytes(1000)) == ErrorCode.INVALID_RECORD


def test_a_client_is_forgotten_after_three_intervals_but_not_within_a_minute() -> None:
    telemetry = ClientTelemetry(1000)
    assert hear_of(telemetry)[1]
    assert not hear_of(telemetry, now_ms=NOW_MS + 3 * INTERVAL_MS - 1)[1]
    assert hear_of(telemetry, now_ms=NOW_MS + 6 * INTERVAL_MS - 1)[1]
    telemetry.subscribe({"s": {"interval.ms": "100"}})
    assert hear_of(telemetry, OTHER)[1]
    assert not hear_of(telemetry, OTHER, NOW_MS + 59_999)[1]
    assert hear_of(telemetry, OTHER, NOW_MS + 120_000)[1]


def test_a_client_is_forgotten_with_its_connection() -> None:
    telemetry = ClientTelemetry(1000)
    hear_of(telemetry)
    telemetry.forget(ONE)
    assert hear_of(telemetry)[1]


def test_not_too_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLIENTS_MAX", 2)
    telemetry = ClientTelemetry(1000)
    third = bytes(range(2, 18))
    for client_id in (ONE, OTHER, ONE, third):
        hear_of(telemetry, client_id)
    assert [hear_of(telemetry, client_id)[1] for client_id in (ONE, third, OTHER)] == [False, False, True]


def test_a_change_of_what_is_wanted_is_a_new_beginning() -> None:
    telemetry = ClientTelemetry(1000)
    client, _ = hear_of(telemetry)
    assert outcome(telemetry, client, NOW_MS) == ErrorCode.NONE
    telemetry.subscribe({"s": {"metrics": "m", "match": "client_id=c"}})
    changed, is_new = hear_of(telemetry)
    assert not is_new
    assert changed is not client
    assert (changed.metrics, changed.interval_ms) == (["m"], INTERVAL_MS)
    assert outcome(telemetry, changed, NOW_MS) == ErrorCode.NONE
    telemetry.subscribe({"s": {"metrics": "m", "match": "client_id=c"}})
    assert hear_of(telemetry)[0] is changed


def wanted_of(client_id: str, pattern: str) -> list[str]:
    telemetry = ClientTelemetry(1000)
    telemetry.subscribe({"s": {"metrics": "m", "match": f"client_id={pattern}"}})
    return telemetry.hear_of(ONE, {"client_id": client_id}, NOW_MS)[0].metrics


def test_no_name_of_a_client_takes_long_to_match() -> None:
    assert wanted_of("a" * 5000 + "!", "(a+)+") == []
    assert wanted_of("a" * 5000, "(a+)+") == ["m"]


def test_an_expression_that_only_another_broker_understands_means_nobody() -> None:
    assert wanted_of("a", r"a(?!b)|a") == []
