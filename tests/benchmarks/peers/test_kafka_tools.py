"""The tools' output was copied from Kafka 4.4.0."""

import pytest

from benchmarks.peers.kafka_tools import complaint, fetch_rate, steady_rate

PRODUCER = """\
Warmup first 20000 records. Steady state results will print after the complete test summary.
100000 records sent, 31279.324367 records/sec (29.83 MB/sec), 704.49 ms avg latency, 1081.00 ms max latency
80000 steady state records sent, 31335.683510 records/sec (29.88 MB/sec), 738.60 ms avg latency
"""
CONSUMER = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec\n"
    "2026-11-29 19:18:02:257, 2026-11-29 19:18:06:084, 95.3674, 24.9196, 100000, 26130.1280, "
    "1744, 2083, 45.7837, 48007.6812\n"
)


def test_the_producers_rate_is_the_one_after_its_warm_up() -> None:
    assert steady_rate(PRODUCER) == pytest.approx(31335.683510)


def test_the_consumers_rate_leaves_out_the_rebalance() -> None:
    assert fetch_rate(CONSUMER, 100_000) == pytest.approx(48007.6812)


def test_a_consumer_that_gave_up_has_no_rate() -> None:
    with pytest.raises(RuntimeError, match="100000 of 100001 records came"):
        fetch_rate(CONSUMER, 100_001)


@pytest.mark.parametrize("said", ["", "WARNING: Exiting before consuming\n", CONSUMER.splitlines()[0]])
def test_a_tool_that_prints_no_figures_has_failed(said: str) -> None:
    with pytest.raises(RuntimeError, match="printed no figures"):
        fetch_rate(said, 1)
    with pytest.raises(RuntimeError, match="printed no figures"):
        steady_rate(said)


def test_a_failure_is_named_after_its_exception() -> None:
    lines = [
        "Topic does not exist",
        "java.util.concurrent.ExecutionException: org.apache.kafka.UnknownException: it is unknown here",
        "\tat org.apache.Exception: a frame of the stack",
    ]
    assert complaint(lines) == "it is unknown here"
    assert complaint(["first", "last", ""]) == "last"
    assert complaint([]) == "nothing said"
