"""What a connection promises, on peers in memory and with every frame poisoned after its handler."""

import math
import struct

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker import limits
from broker.network.sending import Part
from broker.network.waiting import Waiting
from tests.broker.network.memory_peer import MemoryPeer
from tests.broker.network.stub_dispatch import Served, framed, serving, unframed


async def test_a_request_is_answered() -> None:
    served = Served()
    async with serving(served):
        assert await served.exchange(b"now") == [b"now"]


async def test_answers_to_one_packet_leave_in_one_send() -> None:
    served = Served()
    words = [b"now %d" % number for number in range(20)]
    async with serving(served):
        assert await served.exchange(*words) == words
        assert len(served.peer.sent) == 1


async def test_a_request_may_have_no_answer() -> None:
    served = Served()
    async with serving(served):
        assert await served.exchange(b"now 1", b"silent", b"now 2") == [b"now 1", b"now 2"]
        assert len(served.dispatch.started) == 3


async def test_requests_arrive_in_any_pieces() -> None:
    served = Served()
    async with serving(served):
        for byte in framed(b"now 1", b"now 2"):
            served.peer.feed(bytes([byte]))
            await wait_all_tasks_blocked()
        assert served.answers == [b"now 1", b"now 2"]


async def test_nothing_starts_behind_a_request_that_waits() -> None:
    served = Served()
    async with serving(served):
        assert await served.exchange(b"now 1", b"wait", b"now 2") == [b"now 1"]
        await served.exchange(b"now 3")
        assert served.dispatch.started == [b"now 1", b"wait"]
        served.dispatch.waitings[b"wait"].answer(b"done")
        await wait_all_tasks_blocked()
        assert served.answers == [b"now 1", b"done", b"now 2", b"now 3"]


async def test_nothing_is_read_behind_a_request_that_waits() -> None:
    served = Served()
    async with serving(served):
        await served.exchange(b"wait")
        await served.exchange(b"now" * 1000)
        assert served.peer.unread == 3004


async def test_requests_that_overlap_start_at_once_and_are_answered_in_order() -> None:
    served = Served()
    async with serving(served):
        assert await served.exchange(b"over 1", b"over 2") == []
        await served.exchange(b"over 3")
        assert served.dispatch.started == [b"over 1", b"over 2", b"over 3"]
        served.dispatch.waitings[b"over 3"].answer(b"3")
        served.dispatch.waitings[b"over 2"].answer(b"2")
        await wait_all_tasks_blocked()
        assert served.answers == []
        served.dispatch.waitings[b"over 1"].answer(b"1")
        await wait_all_tasks_blocked()
        assert served.answers == [b"1", b"2", b"3"]


async def test_an_answer_leaves_although_later_ones_are_missing() -> None:
    served = Served()
    async with serving(served):
        await served.exchange(b"over 1", b"over 2")
        served.dispatch.waitings[b"over 1"].answer(b"1")
        await wait_all_tasks_blocked()
        assert served.answers == [b"1"]
        assert await served.exchange(b"over 3") == [b"1"]


async def test_others_wait_until_the_connection_owes_nothing() -> None:
    served = Served()
    async with serving(served):
        await served.exchange(b"over 1", b"over 2", b"now", b"over 3")
        assert served.dispatch.started == [b"over 1", b"over 2"]
        served.dispatch.waitings[b"over 1"].answer(b"1")
        await wait_all_tasks_blocked()
        assert served.dispatch.started == [b"over 1", b"over 2"]
        served.dispatch.waitings[b"over 2"].answer(b"2")
        await wait_all_tasks_blocked()
        assert served.dispatch.started == [b"over 1", b"over 2", b"now", b"over 3"]
        assert served.answers == [b"1", b"2", b"now"]


async def test_a_request_that_cannot_be_handled_yet_is_started_again_and_nothing_passes_it() -> None:
    served = Served()
    served.dispatch.not_yet = 2
    async with serving(served):
        assert await served.exchange(b"over 1", b"later", b"now") == []
        served.dispatch.waitings[b"over 1"].answer(b"1")
        await wait_all_tasks_blocked()
        for _ in range(2):
            assert served.answers == [b"1"]
            served.dispatch.waitings[b"later"].answer(None)
            await wait_all_tasks_blocked()
        assert served.answers == [b"1", b"later", b"now"]
        assert served.dispatch.started == [b"over 1", b"later", b"later", b"later", b"now"]


async def test_answers_leave_while_a_request_cannot_be_handled_yet() -> None:
    served = Served()
    async with serving(served):
        assert await served.exchange(b"now", b"later") == [b"now"]
        served.connection.close(None)
        await wait_all_tasks_blocked()
        assert served.peer.is_closed
        served.dispatch.waitings[b"later"].answer(None)  # nobody is there any more


async def test_an_overlapping_request_does_not_pass_one_that_waits() -> None:
    served = Served()
    async with serving(served):
        await served.exchange(b"wait", b"over")
        assert served.dispatch.started == [b"wait"]


async def test_an_overlapping_request_that_is_done_waits_for_its_turn() -> None:
    served = Served()

    def done() -> list[Part]:
        return [framed(b"done")]

    served.dispatch.answers[b"over done"] = done
    async with serving(served):
        assert await served.exchange(b"over 1", b"over done", b"silent") == []
        served.dispatch.waitings[b"over 1"].answer(b"1")
        await wait_all_tasks_blocked()
        assert served.answers == [b"1", b"done"]


async def test_a_late_answer_may_be_no_answer() -> None:
    served = Served()
    async with serving(served):
        await served.exchange(b"over 1", b"over 2", b"now")
        served.dispatch.waitings[b"over 1"].answer(None)
        served.dispatch.waitings[b"over 2"].answer(None)
        await wait_all_tasks_blocked()
        assert served.answers == [b"now"]


async def test_a_late_answer_is_built_in_its_turn() -> None:
    served = Served()
    built = []

    def build() -> bytes:
        built.append(1)
        return b"built"

    async with serving(served):
        await served.exchange(b"over 1", b"over 2")
        served.dispatch.waitings[b"over 2"].answer_with(build)
        await wait_all_tasks_blocked()
        assert not built
        served.dispatch.waitings[b"over 1"].answer(b"1")
        await wait_all_tasks_blocked()
        assert served.answers == [b"1", b"built"]


async def test_a_late_answer_is_one_step_of_the_scheduler_away() -> None:
    served = Served()
    async with serving(served):
        await served.exchange(b"wait")
        served.dispatch.waitings[b"wait"].answer(b"done")
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()  # tasks of one step run in any order
        assert served.answers == [b"done"]


async def test_too_many_in_flight_stop_the_reading() -> None:
    served = Served()
    words = [b"over %d" % number for number in range(limits.REQUESTS_IN_FLIGHT_MAX)]
    async with serving(served):
        await served.exchange(*words)
        assert len(served.dispatch.started) == limits.REQUESTS_IN_FLIGHT_MAX
        await served.exchange(b"over more")
        assert served.peer.unread > 0
        assert len(served.dispatch.started) == limits.REQUESTS_IN_FLIGHT_MAX
        served.dispatch.waitings[b"over 0"].answer(b"0")
        await wait_all_tasks_blocked()
        assert served.dispatch.started[-1] == b"over more"


async def test_the_bytes_of_a_request_are_overwritten_once_its_handler_has_returned() -> None:
    served = Served()
    async with serving(served):
        await served.exchange(b"now", b"wait")
        assert set(b"".join(bytes(frame) for frame in served.dispatch.frames)) == {0xDB}


@pytest.mark.parametrize("size", [100, 100_000])
async def test_an_exclusive_request_keeps_its_bytes_until_it_is_answered(size: int) -> None:
    served = Served()
    word = b"held" + b"!" * size
    async with serving(served):
        await served.exchange(word, b"over", b"now")
        assert bytes(served.dispatch.frames[0]) == word
        assert served.dispatch.started == [word[:20]]  # although both may overlap
        served.dispatch.waitings[word].answer(b"done")
        await wait_all_tasks_blocked()
        assert served.dispatch.started == [word[:20], b"over"]
        assert set(bytes(served.dispatch.frames[0])) == {0xDB}
        assert served.answers == [b"done"]


async def test_an_exclusive_request_can_be_released_before_it_is_answered() -> None:
    served = Served()
    async with serving(served):
        await served.exchange(b"held", b"over 1", b"now")
        served.dispatch.waitings[b"held"].release()
        await wait_all_tasks_blocked()
        assert served.dispatch.started == [b"held", b"over 1"]
        assert served.answers == []
        served.dispatch.waitings[b"over 1"].answer(b"1")
        served.dispatch.waitings[b"held"].answer(b"0")
        await wait_all_tasks_blocked()
        assert served.answers == [b"0", b"1", b"now"]


@pytest.mark.parametrize("is_answered", [False, True])
async def test_a_thread_may_outlive_the_connection_whose_bytes_it_reads(is_answered: bool) -> None:
    served = Served()
    word = b"held" + b"!" * 300_000
    async with serving(served):
        await served.exchange(word)
        if is_answered:
            served.dispatch.waitings[word].answer(b"done")
            await wait_all_tasks_blocked()
        served.connection.close("enough")
        await wait_all_tasks_blocked()
        assert served.memory.held == 0
        buffer = await served.memory.borrow("another", 300_000)
        buffer[:] = b"?" * len(buffer)
        (frame,) = served.dispatch.frames
        assert (bytes(frame) == word) is not is_answered  # once answered, the buffer is used again
        assert (frame[0] == ord("?")) is is_answered


async def test_an_offender_is_named_even_if_it_has_left() -> None:
    served = Served()
    async with serving(served):
        await served.exchange(b"over")
        served.peer.feed(struct.pack(">i", -7))
        await wait_all_tasks_blocked()
        served.peer.vanish()
        served.dispatch.waitings[b"over"].answer(b"done")
        await wait_all_tasks_blocked()
        assert served.peer.is_closed
    assert served.log_lines[0].endswith("it announced a request of -7 bytes")


async def test_what_was_asked_before_a_bad_request_is_answered_before_closing() -> None:
    served = Served()
    async with serving(served):
        assert await served.exchange(b"now", b"bad", b"now") == [b"now"]
        assert served.peer.is_closed
        assert served.dispatch.started == [b"now", b"bad"]
    assert served.log_lines == ["WARN  closed the connection of 10.0.0.7:4711 (TEST): bad is not a word"]


async def test_answers_that_are_owed_are_waited_for_before_closing() -> None:
    served = Served()
    async with serving(served):
        served.peer.feed(framed(b"over 1", b"over 2") + struct.pack(">i", -5))
        await wait_all_tasks_blocked()
        assert served.answers == []
        served.dispatch.waitings[b"over 2"].answer(b"2")
        served.dispatch.waitings[b"over 1"].answer(b"1")
        await wait_all_tasks_blocked()
        assert served.answers == [b"1", b"2"]
        assert served.peer.is_closed
    assert len(served.log_lines) == 1


async def test_a_late_answer_may_close_the_connection() -> None:
    from broker.errors import CloseConnection

    served = Served()
    gone = []
    async with serving(served):
        await served.exchange(b"over 1", b"over 2", b"over 3")
        served.dispatch.waitings[b"over 3"].on_abandoned(lambda: gone.append(3))
        served.dispatch.waitings[b"over 2"].fail(CloseConnection("a batch with acks=0 was refused"))
        served.dispatch.waitings[b"over 1"].answer(b"1")
        await wait_all_tasks_blocked()
        assert served.answers == [b"1"]
        assert served.peer.is_closed
        assert gone == [3]
    assert served.log_lines[0].endswith("a batch with acks=0 was refused")


@pytest.mark.parametrize(
    "garbage", [b"\x00" * 3, struct.pack(">i", -1), b"\xff" * 100, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"]
)
async def test_garbage_and_then_the_end_close_the_connection(garbage: bytes) -> None:
    served = Served()
    async with serving(served):
        await served.exchange(b"now")
        served.peer.feed(garbage)
        served.peer.end()
        await wait_all_tasks_blocked()
        assert served.peer.is_closed
        assert served.answers == [b"now"]


async def test_half_closing_after_a_whole_request_still_gets_the_answer() -> None:
    served = Served()
    async with serving(served):
        served.peer.feed(framed(b"now", b"wait"))
        served.peer.end()
        await wait_all_tasks_blocked()
        assert served.answers == [b"now"]
        served.dispatch.waitings[b"wait"].answer(b"done")
        await wait_all_tasks_blocked()
        assert served.answers == [b"now", b"done"]
        assert served.peer.is_closed
    assert served.log_lines == []


async def test_half_a_request_is_waited_for() -> None:
    served = Served()
    async with serving(served):
        served.peer.feed(framed(b"now and never")[:-1])
        await wait_all_tasks_blocked()
        assert not served.peer.is_closed


async def test_half_closing_after_half_a_request_closes() -> None:
    served = Served()
    async with serving(served):
        served.peer.feed(framed(b"now and never")[:-1])
        await wait_all_tasks_blocked()
        served.peer.end()
        await wait_all_tasks_blocked()
        assert served.peer.is_closed
        assert served.dispatch.started == []


async def test_a_peer_that_vanishes_leaves_nobody_waiting_for_it() -> None:
    served = Served()
    gone = []
    async with serving(served):
        await served.exchange(b"over 1", b"over 2")
        for waiting in served.dispatch.waitings.values():
            waiting.on_abandoned(lambda: gone.append(1))
        served.peer.vanish()
        await wait_all_tasks_blocked()
        assert gone == [1, 1]
        assert served.peer.is_closed
        served.dispatch.waitings[b"over 1"].answer(b"too late")
    assert served.log_lines == []


async def test_ending_from_outside_leaves_nobody_waiting() -> None:
    served = Served()
    gone = []
    async with serving(served):
        await served.exchange(b"wait")
        served.dispatch.waitings[b"wait"].on_abandoned(lambda: gone.append(1))
        served.connection.close("enough")
        await wait_all_tasks_blocked()
        assert gone == [1]
        assert served.peer.is_closed
    assert served.log_lines == ["WARN  closed the connection of 10.0.0.7:4711 (TEST): enough"]


async def test_deadlines_are_kept(autojump_clock: MockClock) -> None:
    served = Served()

    def make(word: bytes) -> Waiting[object]:
        waiting: Waiting[object] = Waiting(trio.current_time() + 30, lambda: waiting.answer(b"nothing new"))
        return waiting

    served.dispatch.make_waiting = make
    async with serving(served):
        served.peer.feed(framed(b"wait"))
        await trio.sleep(29.9)
        assert served.answers == []
        await trio.sleep(0.2)
        assert served.answers == [b"nothing new"]


async def test_a_client_that_does_not_read_is_not_read_from() -> None:
    served = Served()
    answer = framed(b"x" * 10_000)
    served.dispatch.answers[b"big"] = lambda: [answer]
    async with serving(served):
        served.peer.stop_reading(room=15_000)
        served.peer.feed(framed(*[b"big"] * 1000))
        await wait_all_tasks_blocked()
        assert len(served.dispatch.started) < 100
        assert served.connection.is_sending
        assert served.peer.unread > 2_000
        served.peer.take()
        await wait_all_tasks_blocked()
        assert unframed(served.peer.received) == [b"x" * 10_000] * 1000


async def test_answers_do_not_gather_beyond_a_limit() -> None:
    served = Served()
    served.dispatch.answers[b"big"] = lambda: [framed(b"x" * 20_000)]
    async with serving(served):
        await served.exchange(*[b"big"] * 32)
        assert max(len(data) for data in served.peer.sent) <= limits.READY_BYTES_MAX + 20_004


async def test_a_busy_peer_yields_after_every_receive() -> None:
    """With one step of the scheduler per receive, as many of its own steps must another task get."""
    served = Served()
    steps = 0

    async def count_steps() -> None:
        nonlocal steps
        while True:
            await trio.lowlevel.checkpoint()
            steps += 1

    async with serving(served):
        served.peer.feed(framed(*[b"now" + bytes(90_000)] * 200))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(count_steps)
            while served.peer.unread:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        assert steps >= served.peer.receives * 0.9
        assert served.peer.receives >= 200


async def test_a_packet_of_many_small_requests_yields_in_between() -> None:
    served = Served()
    started_per_step = []

    async def watch() -> None:
        before = len(served.dispatch.started)
        while True:
            await trio.lowlevel.checkpoint()
            started_per_step.append(len(served.dispatch.started) - before)
            before = len(served.dispatch.started)

    async with serving(served):
        await served.exchange(*[b"now"] * 20_000)  # the inbox has grown to its full size now
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            served.peer.feed(framed(*[b"now"] * 8_000))
            while served.peer.unread or len(served.dispatch.started) < 28_000:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    # Another task may be passed over once, as tasks of one step run in any order.
    assert max(started_per_step) <= 2 * limits.FRAMES_BEFORE_YIELD


async def test_a_busy_peer_does_not_starve_another() -> None:
    served = Served()
    other_peer = MemoryPeer()
    other = served.connect(other_peer)
    async with serving(served), trio.open_nursery() as nursery:
        nursery.start_soon(other.serve)
        served.peer.feed(framed(*[b"now" + bytes(200_000)] * 100))
        await trio.lowlevel.checkpoint()
        receives = served.peer.receives
        other_peer.feed(framed(b"now"))
        while not other_peer.sent:
            await trio.lowlevel.checkpoint()
        assert served.peer.unread > 0
        assert served.peer.receives - receives <= 6
        nursery.cancel_scope.cancel()


class StepsPerPass(trio.abc.Instrument):
    """How many requests have started between two looks at the sockets."""

    def __init__(self, started: list[bytes]) -> None:
        self._started = started
        self._before = len(started)
        self.counts: list[int] = []

    def before_io_wait(self, timeout: float) -> None:
        self.counts.append(len(self._started) - self._before)
        self._before = len(self._started)


@pytest.mark.parametrize(("size", "most"), [(limits.LONG_STEP_BYTES, 1), (1000, 8)])
async def test_large_requests_of_several_peers_start_one_by_one(size: int, most: int) -> None:
    """A small request waits for one large one, not for one of each busy peer."""
    served = Served()
    peers = [MemoryPeer() for _ in range(8)]
    async with serving(served), trio.open_nursery() as nursery:
        for peer in peers:
            nursery.start_soon(served.connect(peer).serve)
        await wait_all_tasks_blocked()
        watch = StepsPerPass(served.dispatch.started)
        trio.lowlevel.add_instrument(watch)
        for _ in range(20):
            for peer in peers:
                peer.feed(framed(b"now" + bytes(size - 3)))
            await wait_all_tasks_blocked()
        trio.lowlevel.remove_instrument(watch)
        assert [len(unframed(peer.received)) for peer in peers] == [20] * 8
        assert max(watch.counts) == most
        nursery.cancel_scope.cancel()


async def test_large_requests_are_served_from_borrowed_memory() -> None:
    served = Served()
    word = b"now" + bytes(700_000)
    async with serving(served):
        assert await served.exchange(word, word) == [word, word]
        assert served.memory.held == 0
        served.peer.feed(framed(word)[:500_000])
        await wait_all_tasks_blocked()
        assert served.memory.held > 0
        assert served.connection.has_large_request
    assert served.memory.held == 0


async def test_a_thousand_announcements_of_100_mib_cost_little() -> None:
    served = Served(frame_bytes_max=104_857_600)
    async with trio.open_nursery() as nursery:
        for _ in range(1000):
            peer = MemoryPeer()
            peer.feed(struct.pack(">i", 104_857_600) + b"four")
            nursery.start_soon(served.connect(peer).serve)
        await wait_all_tasks_blocked()
        assert served.memory.held <= 1000 * limits.LARGE_FRAME_BYTES_START
        nursery.cancel_scope.cancel()
    assert served.memory.held == 0


async def test_while_memory_is_short_large_requests_wait_and_small_ones_do_not() -> None:
    served = Served(memory_bytes_max=300_000)
    word = b"now" + bytes(250_000)
    first, second, third, fourth = peers = [MemoryPeer() for _ in range(4)]
    async with trio.open_nursery() as nursery:
        for peer in peers:
            nursery.start_soon(served.connect(peer).serve)
        for peer in (first, second, third):
            peer.feed(framed(word)[:200_000])
            await wait_all_tasks_blocked()
        assert [peer.unread > 0 for peer in peers] == [False, True, True, False]
        fourth.feed(framed(b"now"))
        await wait_all_tasks_blocked()
        assert unframed(fourth.received) == [b"now"]
        for peer in (third, second, first):
            peer.feed(framed(word)[200_000:])
        await wait_all_tasks_blocked()
        assert [unframed(peer.received) for peer in (first, second, third)] == [[word]] * 3
        nursery.cancel_scope.cancel()


async def test_an_unexpected_error_is_logged_and_closes_only_this_connection() -> None:
    served = Served()

    def broken() -> list[Part]:
        raise ZeroDivisionError("a mistake of ours")

    served.dispatch.answers[b"broken"] = broken
    other_peer = MemoryPeer()
    async with serving(served), trio.open_nursery() as nursery:
        nursery.start_soon(served.connect(other_peer).serve)
        await served.exchange(b"now", b"broken")
        assert served.peer.is_closed
        other_peer.feed(framed(b"now"))
        await wait_all_tasks_blocked()
        assert unframed(other_peer.received) == [b"now"]
        nursery.cancel_scope.cancel()
    assert served.output.getvalue().count("Traceback") == 1


async def test_it_knows_what_closing_would_lose() -> None:
    served = Served()
    served.dispatch.make_waiting = lambda word: Waiting(droppable=word.endswith(b"droppable"))
    connection = served.connection
    states = []

    async def note(*words: bytes) -> None:
        await served.exchange(*words)
        states.append(connection.owes_nothing)

    async with serving(served):
        await note(b"now")
        await note(b"over")
        served.dispatch.waitings[b"over"].answer(b"done")
        await note(b"over droppable")
        await note(b"over again")
        served.dispatch.waitings[b"over again"].answer(b"done")
        await note()
        served.dispatch.waitings[b"over droppable"].answer(b"done")
        await note()
        served.peer.stop_reading()
        await note(b"now")
        assert math.isfinite(served.peer.transfers)
    assert states == [True, False, True, False, False, True, False]


async def test_a_throttled_peer_is_answered_at_once_and_not_heard_for_a_while(
    autojump_clock: MockClock,
) -> None:
    served = Served()
    async with serving(served):
        served.peer.feed(framed(b"now 1", b"deaf", b"now 2"))
        await trio.sleep(9.9)
        assert served.answers == [b"now 1", b"deaf"]
        served.peer.feed(framed(b"now 3"))
        await trio.sleep(0.2)
        assert served.answers == [b"now 1", b"deaf", b"now 2", b"now 3"]


async def test_nothing_is_read_from_a_throttled_peer(autojump_clock: MockClock) -> None:
    served = Served()
    async with serving(served):
        assert await served.exchange(b"deaf") == [b"deaf"]
        before = served.connection.transfers
        served.peer.feed(framed(b"now"))
        await trio.sleep(9.9)
        assert served.connection.transfers == before
        await trio.sleep(0.2)
        assert served.answers == [b"deaf", b"now"]


async def test_what_a_throttled_peer_is_owed_leaves_when_it_is_there(autojump_clock: MockClock) -> None:
    served = Served()
    async with serving(served):
        served.peer.feed(framed(b"over 1", b"deaf", b"now"))
        await wait_all_tasks_blocked()
        served.dispatch.waitings[b"over 1"].answer(b"one")
        await trio.sleep(0.1)
        assert served.answers == [b"one", b"deaf"]
        await trio.sleep(10)
        assert served.answers == [b"one", b"deaf", b"now"]


async def test_a_throttled_connection_can_be_closed(autojump_clock: MockClock) -> None:
    served = Served()
    async with serving(served):
        assert await served.exchange(b"deaf", b"now") == [b"deaf"]
        assert served.connection.owes_nothing
        served.connection.close(None)
        await wait_all_tasks_blocked()
        assert served.peer.is_closed
