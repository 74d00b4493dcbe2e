import random
from mmap import mmap

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker import limits
from broker.network.memory import FrameMemory

KB = 1024


def waiting_in(memory: FrameMemory, owners: str) -> str:
    """Those of ``owners`` who stand in line."""
    line = "".join(owner for owner in owners if memory.is_waiting(owner))
    assert memory.is_short == bool(line)
    return line


async def test_buffers_are_counted_while_they_are_lent() -> None:
    memory = FrameMemory(1000 * KB)
    first = await memory.borrow("a", 100 * KB)
    second = await memory.borrow("b", 200 * KB)
    assert (len(first), len(second), memory.held) == (100 * KB, 200 * KB, 300 * KB)
    memory.give_back("a", first)
    assert memory.held == 200 * KB


@pytest.mark.parametrize("size", [limits.MAPPED_FRAME_BYTES_MIN, 64 * limits.MAPPED_FRAME_BYTES_MIN])
async def test_large_buffers_are_no_part_of_the_heap(size: int) -> None:
    memory = FrameMemory(1 << 40)
    assert isinstance(await memory.borrow("a", limits.MAPPED_FRAME_BYTES_MIN - 1), bytearray)
    buffer = await memory.borrow("a", size)
    assert isinstance(buffer, mmap)
    assert len(buffer) == size
    view = memoryview(buffer)
    view[-3:] = b"end"
    del buffer
    assert bytes(view[-4:]) == b"\0end", "they live as long as somebody looks at them"


async def test_finished_buffers_are_used_again_if_they_fit() -> None:
    memory = FrameMemory(10_000 * KB)
    buffer = await memory.borrow("a", 100 * KB)
    memory.give_back("a", buffer)
    assert await memory.borrow("b", 200 * KB) is not buffer
    assert await memory.borrow("b", 20 * KB) is not buffer  # five times too large
    assert await memory.borrow("b", 90 * KB) is buffer
    assert memory.held == 320 * KB


async def test_only_a_few_and_no_huge_buffers_are_kept() -> None:
    memory = FrameMemory(1 << 40)
    huge = await memory.borrow("a", limits.TRUSTED_FRAME_BYTES_MAX + 1)
    memory.give_back("a", huge)
    buffers = [await memory.borrow("a", (100 + index) * KB) for index in range(10)]
    for buffer in buffers:
        memory.give_back("a", buffer)
    assert await memory.borrow("a", len(huge)) is not huge
    again = [await memory.borrow("a", 100 * KB) for _ in range(10)]
    reused = [buffer for buffer in again if any(buffer is earlier for earlier in buffers)]
    assert len(reused) == limits.SPARE_FRAME_BUFFERS


async def test_when_memory_is_short_one_may_go_on_and_the_others_wait_in_line() -> None:
    memory = FrameMemory(100 * KB)
    held = {}

    async def borrow(owner: str, size: int) -> None:
        held[owner] = await memory.borrow(owner, size)

    async with trio.open_nursery() as nursery:
        await borrow("a", 90 * KB)
        await borrow("b", 50 * KB)  # the first that meets the shortage goes on
        assert memory.held == 140 * KB
        assert waiting_in(memory, "abcde") == ""
        for owner, size in (("c", 80 * KB), ("d", 1 * KB), ("e", 90 * KB)):
            nursery.start_soon(borrow, owner, size)
            await wait_all_tasks_blocked()
        assert waiting_in(memory, "abcde") == "cde"
        memory.give_back("a", held["a"])
        await wait_all_tasks_blocked()
        # 50 are lent, and "c" does not fit with them; "b" is still the exempt one.
        assert waiting_in(memory, "abcde") == "cde"
        memory.give_back("b", held["b"])
        await wait_all_tasks_blocked()
        # "c" and "d" fit, and "e" is the next that may exceed the limit.
        assert waiting_in(memory, "abcde") == ""
    assert memory.held >= 171 * KB


async def test_the_exempt_request_may_grow_to_its_end_past_everybody_in_line() -> None:
    memory = FrameMemory(100 * KB)
    first = await memory.borrow("a", 90 * KB)
    exempt = await memory.borrow("b", 20 * KB)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(memory.borrow, "c", 20 * KB)
        await wait_all_tasks_blocked()
        larger = await memory.borrow("b", 500 * KB)
        memory.give_back("b", exempt, finished=False)
        largest = await memory.borrow("b", 900 * KB)
        memory.give_back("b", larger, finished=False)
        assert waiting_in(memory, "abc") == "c"
        memory.give_back("b", largest)
        await wait_all_tasks_blocked()
        assert waiting_in(memory, "abc") == ""
    memory.give_back("a", first)


async def test_who_leaves_the_line_does_not_block_it() -> None:
    memory = FrameMemory(100 * KB)
    await memory.borrow("a", 90 * KB)
    await memory.borrow("b", 30 * KB)
    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()

        async def give_up() -> None:
            with scope:
                await memory.borrow("c", 90 * KB)

        nursery.start_soon(give_up)
        await wait_all_tasks_blocked()
        assert waiting_in(memory, "abc") == "c"
        scope.cancel()
    assert waiting_in(memory, "abc") == ""
    assert memory.held == 120 * KB


async def test_a_shortage_can_be_waited_for() -> None:
    memory = FrameMemory(100 * KB)
    buffer = await memory.borrow("a", 100 * KB)
    other = await memory.borrow("b", 100 * KB)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(memory.borrow, "c", 10 * KB)
        with trio.fail_after(5):
            await memory.wait_short()
        memory.give_back("a", buffer)
        memory.give_back("b", other)
    with pytest.raises(trio.TooSlowError):
        with trio.fail_after(0):
            await memory.wait_short()


async def test_nobody_is_forgotten_whatever_happens(chance: random.Random) -> None:
    memory = FrameMemory(500 * KB)
    finished = []
    highest = 0

    async def request(owner: int) -> None:
        nonlocal highest
        size = chance.choice([16, 64, 200, 700]) * KB
        buffer = await memory.borrow(owner, 16 * KB)
        while len(buffer) < size:
            await trio.lowlevel.checkpoint()
            larger = await memory.borrow(owner, 2 * len(buffer))
            memory.give_back(owner, buffer, finished=False)
            buffer = larger
        highest = max(highest, memory.held)
        await trio.lowlevel.checkpoint()
        memory.give_back(owner, buffer)
        finished.append(owner)

    async with trio.open_nursery() as nursery:
        for owner in range(60):
            nursery.start_soon(request, owner)
    assert sorted(finished) == list(range(60))
    assert memory.held == 0
    assert highest <= (500 + 1024 + 512) * KB
