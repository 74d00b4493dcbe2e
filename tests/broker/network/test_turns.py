"""What counts is between two looks at the sockets: a pass of the scheduler, which ``Passes`` counts."""

from collections import Counter

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.network.turns import STEPS_ALONE, Turns


class Passes(trio.abc.Instrument):
    """Numbers the passes of the scheduler."""

    def __init__(self) -> None:
        self.number = 0

    def after_io_wait(self, timeout: float) -> None:
        self.number += 1


@pytest.fixture
def passes() -> Passes:
    return Passes()


async def make_steps(
    turns: Turns, steps: list[tuple[str, int]], name: str, count: int, passes: Passes
) -> None:
    for _ in range(count):
        await turns.take()
        with turns:
            steps.append((name, passes.number))
        await trio.lowlevel.checkpoint()


async def test_there_is_one_step_in_a_pass_and_everybody_has_his_turn(passes: Passes) -> None:
    turns = Turns()
    steps: list[tuple[str, int]] = []
    trio.lowlevel.add_instrument(passes)
    async with trio.open_nursery() as busy:
        for name in "abc":
            busy.start_soon(make_steps, turns, steps, name, 50, passes)
    trio.lowlevel.remove_instrument(passes)
    assert Counter(name for name, _ in steps) == {"a": 50, "b": 50, "c": 50}
    assert max(Counter(number for _, number in steps).values()) == 1
    for start in range(120):
        assert {name for name, _ in steps[start : start + 6]} == {"a", "b", "c"}


async def test_steps_of_others_are_apart_even_when_nobody_waits(passes: Passes) -> None:
    turns = Turns()
    steps: list[tuple[str, int]] = []
    trio.lowlevel.add_instrument(passes)
    for _ in range(20):
        async with trio.open_nursery() as nursery:
            for name in "ab":
                nursery.start_soon(make_steps, turns, steps, name, 1, passes)
    trio.lowlevel.remove_instrument(passes)
    assert max(Counter(number for _, number in steps).values()) == 1


async def test_who_is_alone_for_long_takes_turns_without_a_checkpoint(passes: Passes) -> None:
    turns = Turns()
    seen = [passes.number]
    trio.lowlevel.add_instrument(passes)
    for _ in range(1 + STEPS_ALONE):
        await turns.take()
        with turns:
            seen.append(passes.number)
    trio.lowlevel.remove_instrument(passes)
    assert seen == sorted(set(seen)), "one step in each pass"
    for _ in range(3):
        with trio.testing.assert_no_checkpoints():
            await turns.take()
            with turns:
                pass


async def test_who_makes_a_second_step_waits_behind_those_who_wait() -> None:
    turns = Turns()
    made: list[str] = []

    async def step(name: str) -> None:
        await turns.take()
        with turns:
            made.append(name)

    async with trio.open_nursery() as nursery:
        await turns.take()
        nursery.start_soon(step, "other")
        await wait_all_tasks_blocked()
        with turns:
            made.append("first")
        await step("second")
    assert made == ["first", "other", "second"]


async def test_a_step_that_fails_frees_the_turn() -> None:
    turns = Turns()
    for _ in range(3):
        with trio.fail_after(5):
            await turns.take()
        with pytest.raises(ValueError, match="broken"), turns:
            raise ValueError("broken")


async def test_whoever_gives_up_waiting_leaves_the_turn_to_the_next() -> None:
    turns = Turns()
    made: list[str] = []

    async def step(name: str) -> None:
        await turns.take()
        with turns:
            made.append(name)

    await turns.take()
    async with trio.open_nursery() as others:
        with trio.CancelScope() as scope:
            scope.cancel()
            await turns.take()
        assert scope.cancelled_caught
        others.start_soon(step, "next")
        await wait_all_tasks_blocked()
        assert made == []
        with turns:
            pass
    assert made == ["next"]
