import time

import pytest
import trio

from broker.clock import BrokerClock


def test_it_runs_with_real_time() -> None:
    clock = BrokerClock()
    before = time.time_ns() // 1_000_000
    now_ms = clock.now_ms()
    assert before <= now_ms <= time.time_ns() // 1_000_000
    assert abs(clock.current_time() - time.monotonic()) < 60


def test_advancing_moves_both_faces_by_the_same() -> None:
    clock = BrokerClock()
    seconds, milliseconds = clock.current_time(), clock.now_ms()
    clock.advance(90_000)
    clock.advance(10_500)
    assert clock.advanced_ms == 100_500
    assert 100.5 <= clock.current_time() - seconds < 160
    assert 100_500 <= clock.now_ms() - milliseconds < 160_000


def test_it_never_goes_back() -> None:
    clock = BrokerClock()
    with pytest.raises(ValueError, match="back"):
        clock.advance(-1)
    assert clock.advanced_ms == 0


def test_sleepers_wake_when_the_clock_is_moved_from_inside() -> None:
    clock = BrokerClock()
    order = []

    async def sleep(seconds: float) -> None:
        await trio.sleep(seconds)
        order.append(seconds)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for seconds in (3000.0, 1000.0, 2000.0):
                nursery.start_soon(sleep, seconds)
            await trio.testing.wait_all_tasks_blocked()
            clock.advance(1_500_000)
            await trio.testing.wait_all_tasks_blocked()
            assert order == [1000.0]
            clock.advance(2_000_000)

    started = time.monotonic()
    trio.run(main, clock=clock)
    assert sorted(order) == [1000.0, 2000.0, 3000.0]
    assert time.monotonic() - started < 500
