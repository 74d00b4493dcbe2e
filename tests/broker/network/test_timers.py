import io
import math
import random

import trio

from broker.logs import Log
from broker.network.timers import Timers
from broker.network.waiting import Waiting


async def test_deadlines_pass_in_order(autojump_clock: trio.testing.MockClock, chance: random.Random) -> None:
    timers = Timers(Log(io.StringIO()))
    passed: list[tuple[float, float]] = []
    moments = [chance.uniform(0, 100) for _ in range(200)]

    def add(moment: float) -> None:
        waiting: Waiting[object] = Waiting(moment, lambda: passed.append((moment, trio.current_time())))
        timers.add(waiting)

    async with trio.open_nursery() as nursery:
        start = trio.current_time()
        for moment in moments[:100]:
            add(start + moment)
        nursery.start_soon(timers.run)
        for moment in moments[100:]:
            add(start + moment)
        await trio.sleep(101)
        nursery.cancel_scope.cancel()
    assert [due for due, _ in passed] == sorted(start + moment for moment in moments)
    assert all(abs(due - actual) < 1e-6 for due, actual in passed)


async def test_one_added_later_may_be_due_earlier(autojump_clock: trio.testing.MockClock) -> None:
    timers = Timers(Log(io.StringIO()))
    late: Waiting[object] = Waiting(trio.current_time() + 50, lambda: late.answer("late"))
    early: Waiting[object] = Waiting(trio.current_time() + 5, lambda: early.answer("early"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(timers.run)
        timers.add(late)
        await trio.testing.wait_all_tasks_blocked()
        timers.add(early)
        await trio.sleep(10)
        assert early.is_answered
        assert not late.is_answered
        nursery.cancel_scope.cancel()


async def test_an_error_at_a_deadline_fails_that_request_only(
    autojump_clock: trio.testing.MockClock,
) -> None:
    output = io.StringIO()
    timers = Timers(Log(output))

    def broken() -> None:
        raise ZeroDivisionError("broken")

    first: Waiting[object] = Waiting(trio.current_time() + 1, broken)
    second: Waiting[object] = Waiting(trio.current_time() + 2, lambda: second.answer("fine"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(timers.run)
        timers.add(first)
        timers.add(second)
        await trio.sleep(3)
        nursery.cancel_scope.cancel()
    assert first.is_answered
    assert second.result() == "fine"
    assert output.getvalue().count("ERROR") == 1


async def test_answered_requests_do_not_pile_up() -> None:
    timers = Timers(Log(io.StringIO()))
    for _ in range(10_000):
        waiting: Waiting[object] = Waiting(trio.current_time() + 3600, lambda: None)
        timers.add(waiting)
        waiting.answer("soon")
    assert len(timers) <= 64


async def test_those_without_deadline_are_not_kept() -> None:
    timers = Timers(Log(io.StringIO()))
    timers.add(Waiting())
    timers.add(Waiting(math.inf, lambda: None))
    assert len(timers) == 0


async def test_it_does_not_wake_for_each_that_was_answered_long_ago(
    autojump_clock: trio.testing.MockClock,
) -> None:
    timers = Timers(Log(io.StringIO()))
    now = trio.current_time()
    first: Waiting[object] = Waiting(now + 1, lambda: first.answer("late"))
    answered: list[Waiting[object]] = [Waiting(now + 2 + index, lambda: None) for index in range(5)]
    last: Waiting[object] = Waiting(now + 9, lambda: last.answer("late"))
    for waiting in (first, *answered, last):
        timers.add(waiting)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(timers.run)
        await trio.sleep(0.5)
        for waiting in answered:
            waiting.answer("in time")
        await trio.sleep(1)
        assert (first.is_answered, last.is_answered, len(timers)) == (True, False, 1)
        await trio.sleep(8)
        assert last.is_answered
        nursery.cancel_scope.cancel()
