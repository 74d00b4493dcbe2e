import random
import struct

import pytest

from broker import limits
from broker.errors import CloseConnection
from broker.network.inbox import Inbox
from tests.broker.network.stub_dispatch import framed

MB = 1024 * 1024


class Sender:
    """Fills an inbox as a socket would, and lends it buffers."""

    def __init__(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self.frames: list[bytes] = []
        self.lent_bytes = 0
        self.lent_bytes_max = 0
        self.copies = 0

    def send(self, data: bytes, *, at_most: int = 1 << 30) -> None:
        while data:
            self.lend()
            space = self.inbox.space()
            count = min(len(space), len(data), at_most)
            assert count > 0
            space[:count] = data[:count]
            data = data[count:]
            self.inbox.received(count)
            for frame in self.inbox.frames():
                assert not frame.readonly
                self.frames.append(bytes(frame))
            if self.inbox.lent is not None:
                self.lent_bytes -= len(self.inbox.lent)
                self.inbox.lent = None

    def lend(self) -> None:
        wanted = self.inbox.wanted
        if wanted:
            self.lent_bytes += wanted
            self.lent_bytes_max = max(self.lent_bytes_max, self.lent_bytes)
            left = self.inbox.grow(bytearray(wanted))
            if left is not None:
                self.copies += 1
                self.lent_bytes -= len(left)


@pytest.mark.parametrize("at_most", [1, 2, 3, 7, 4096, 1 << 30])
def test_frames_are_cut_wherever_the_bytes_are_split(at_most: int) -> None:
    bodies = [b"", b"a", b"four", b"x" * 4092, b"y" * 4093, b"", b"z" * 20_000]
    sender = Sender(Inbox(MB))
    sender.send(framed(*bodies), at_most=at_most)
    assert sender.frames == bodies
    assert sender.inbox.is_empty


def test_any_mixture_of_sizes_arrives(chance: random.Random) -> None:
    sender = Sender(Inbox(4 * MB))
    edges = [limits.INBOX_BYTES_START, limits.INBOX_BYTES_MAX, limits.LARGE_FRAME_BYTES_START, 200_000]
    bodies = [chance.randbytes(max(0, chance.choice(edges) + chance.randint(-6, 6))) for _ in range(60)]
    bodies += [chance.randbytes(int(10 ** chance.uniform(0, 6.4))) for _ in range(40)]
    chance.shuffle(bodies)
    data = framed(*bodies)
    while data:
        count = int(10 ** chance.uniform(0, 6))
        sender.send(data[:count])
        data = data[count:]
    assert sender.frames == bodies
    assert sender.inbox.is_empty
    assert sender.lent_bytes == 0


def test_a_frame_is_a_view_that_later_bytes_overwrite() -> None:
    inbox = Inbox(MB)
    inbox.space()[:9] = framed(b"first")
    inbox.received(9)
    (frame,) = inbox.frames()
    inbox.space()[:9] = framed(b"other")
    assert bytes(frame) == b"other"


@pytest.mark.parametrize("size", [-1, -2, -(2**31), MB + 1, 2**31 - 1])
def test_a_length_that_cannot_be_is_refused(size: int) -> None:
    inbox = Inbox(MB)
    inbox.space()[:4] = struct.pack(">i", size)
    inbox.received(4)
    with pytest.raises(CloseConnection, match=f"a request of {size} bytes"):
        list(inbox.frames())


def test_frames_before_a_wrong_length_are_given() -> None:
    inbox = Inbox(MB)
    data = framed(b"good", b"fine") + struct.pack(">i", -1)
    inbox.space()[: len(data)] = data
    inbox.received(len(data))
    frames = inbox.frames()
    assert [bytes(next(frames)), bytes(next(frames))] == [b"good", b"fine"]
    with pytest.raises(CloseConnection):
        next(frames)


def test_a_length_at_the_limit_is_waited_for() -> None:
    inbox = Inbox(MB)
    inbox.space()[:4] = struct.pack(">i", MB)
    inbox.received(4)
    assert list(inbox.frames()) == []
    assert not inbox.is_empty


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b"GET / HTTP/1.1\r\n", "HTTP"),
        (b"POST /topics HTTP/1.1\r\n", "HTTP"),
        (b"PRI * HTTP/2.0\r\n", "HTTP/2"),
        (b"\x16\x03\x01\x02\x00\x01\x00", "TLS"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "SSH"),
    ],
)
def test_other_protocols_are_recognised(start: bytes, name: str) -> None:
    inbox = Inbox(104_857_600)
    inbox.space()[: len(start)] = start
    inbox.received(len(start))
    with pytest.raises(CloseConnection, match=name):
        list(inbox.frames())


def test_an_announced_length_alone_commits_little() -> None:
    inbox = Inbox(104_857_600)
    sender = Sender(inbox)
    sender.send(struct.pack(">i", 104_857_600) + b"four")
    sender.lend()
    assert inbox.is_large
    assert sender.lent_bytes == limits.LARGE_FRAME_BYTES_START
    assert inbox.capacity == limits.INBOX_BYTES_START


def test_a_large_request_takes_memory_as_it_arrives() -> None:
    sender = Sender(Inbox(104_857_600))
    body = bytes(range(256)) * (64 * 4096)
    data = framed(body)
    for start in range(0, len(data), 1_000_000):
        sender.send(data[start : start + 1_000_000])
        arrived = start + 1_000_000
        assert sender.lent_bytes <= max(4 * MB, 2.1 * arrived)
    assert sender.frames == [body]
    assert sender.lent_bytes == 0


def test_who_has_finished_a_large_request_gets_the_next_in_one_piece() -> None:
    sender = Sender(Inbox(104_857_600))
    body = bytes(1_000_000)
    sender.send(framed(body))
    copies = sender.copies
    assert copies > 0
    sender.send(framed(body, body))
    assert sender.copies == copies
    assert sender.frames == [body] * 3


def test_trust_ends_at_the_size_of_ordinary_requests() -> None:
    sender = Sender(Inbox(104_857_600))
    sender.send(framed(bytes(8 * MB)))
    sender.send(struct.pack(">i", 100 * MB) + b"four")
    sender.lend()
    assert sender.lent_bytes <= limits.TRUSTED_FRAME_BYTES_MAX


def test_a_large_request_is_filled_in_place_after_the_first_bytes() -> None:
    sender = Sender(Inbox(MB))
    sender.send(framed(bytes(500_000)))  # trusted from now on
    sender.send(framed(bytes(500_000))[:100])
    sender.lend()
    inbox = sender.inbox
    space = inbox.space()
    space[:4] = b"here"
    inbox.received(4)
    space = inbox.space()
    space[: 500_000 - 100] = bytes(500_000 - 100)
    inbox.received(500_000 - 100)
    (frame,) = inbox.frames()
    assert bytes(frame[96:100]) == b"here"
    assert len(frame) == 500_000


def test_large_requests_leave_the_inbox_small_and_small_ones_let_it_grow() -> None:
    sender = Sender(Inbox(MB))
    for _ in range(5):
        sender.send(framed(bytes(300_000)))
    assert sender.inbox.capacity == limits.INBOX_BYTES_START
    sender.send(framed(*[b"tiny!"] * 20_000))
    assert sender.inbox.capacity == limits.INBOX_BYTES_MAX


def test_a_quiet_connection_gives_memory_back() -> None:
    sender = Sender(Inbox(MB))
    sender.send(framed(bytes(50_000)))
    assert sender.inbox.capacity == limits.INBOX_BYTES_MAX
    sender.inbox.shrink()
    assert sender.inbox.capacity == limits.INBOX_BYTES_START
    sender.send(framed(b"still works"))
    assert sender.frames[-1] == b"still works"


def test_what_has_begun_to_arrive_is_not_lost_by_shrinking() -> None:
    sender = Sender(Inbox(MB))
    data = framed(bytes(50_000), b"unfinished")
    sender.send(data[:-3])
    sender.inbox.shrink()
    sender.send(data[-3:])
    assert sender.frames[-1] == b"unfinished"


def test_abandoning_gives_the_borrowed_buffer() -> None:
    sender = Sender(Inbox(MB))
    assert sender.inbox.abandon() is None
    sender.send(framed(bytes(500_000))[:400_000])
    buffer = sender.inbox.abandon()
    assert buffer is not None
    assert len(buffer) == sender.lent_bytes
    assert sender.inbox.is_empty


def test_it_says_whether_more_may_be_there() -> None:
    inbox = Inbox(MB)
    assert inbox.received(len(inbox.space()[:10])) is False
    space = inbox.space()
    assert inbox.received(len(space)) is True
