"""What holds for every message in every version: it round-trips, and only DecodeError escapes from bytes."""

import functools
import random
from collections.abc import Callable, Sequence

import pytest

from protocol.errors import DecodeError, EncodeError
from protocol.schema import Message
from tests.protocol.every_message import API_MESSAGES, EVERY_MESSAGE, STORED_MESSAGES
from tests.protocol.random_messages import RandomMessages, lossy_changes

KINDS_A_TEST = 20
"""A test of its own for each message costs more than what is tested."""


def every_message(check: Callable[[type[Message], random.Random], None]) -> Callable[..., None]:
    """A test of ``check`` with every kind of message, some kinds at a time."""
    groups = [
        EVERY_MESSAGE[first : first + KINDS_A_TEST] for first in range(0, len(EVERY_MESSAGE), KINDS_A_TEST)
    ]

    @pytest.mark.parametrize("kinds", groups, ids=lambda kinds: kinds[0].__name__)
    @functools.wraps(check)
    def test(kinds: Sequence[type[Message]], chance: random.Random) -> None:
        for kind in kinds:
            try:
                check(kind, chance)
            except BaseException as error:
                error.add_note(f"with {kind.__name__}")
                raise

    del test.__wrapped__  # pytest would ask for its parameters
    return test


ROUNDS = 4
FUZZ_ROUNDS = 40
HOSTILE_LENGTHS = (-2, -1, 2**31 - 1, -(2**31), 2**24)
HOSTILE_VARINTS = (
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff",
    b"\x80\x80\x80\x80\x00",
    b"\xfe\xff\x03",
)


def test_the_sweep_sees_what_kafka_declares() -> None:
    assert len({message.api_key for message in API_MESSAGES}) == 91, (
        "keys 0 to 94 but the four that 4.0 removed"
    )
    assert len(API_MESSAGES) == 2 * 91
    assert len(STORED_MESSAGES) > 70


@every_message
def test_a_message_comes_back_as_it_was(kind: type[Message], chance: random.Random) -> None:
    values = RandomMessages(chance)
    for version in kind.versions:
        for _ in range(ROUNDS):
            message = values.message(kind, version)
            data = message.encode(version)
            again, end = kind.decode_from(data, 0, version)
            assert again == message, f"version {version}"
            assert end == len(data)
            assert again.encode(version) == data


@every_message
def test_defaults_can_be_written_in_every_version(kind: type[Message], chance: random.Random) -> None:
    for version in kind.versions:
        data = kind().encode(version)
        assert kind.decode(data, version).encode(version) == data


@every_message
def test_the_place_in_a_buffer_does_not_matter(kind: type[Message], chance: random.Random) -> None:
    values = RandomMessages(chance)
    version = kind.versions[-1]
    message = values.message(kind, version)
    data = message.encode(version)
    surrounded = b"\xff" * 7 + data + b"\xff" * 9
    for buffer in (surrounded, bytearray(surrounded), memoryview(surrounded)):
        assert kind.decode_from(buffer, 7, version) == (message, 7 + len(data))


@every_message
def test_every_truncation_is_a_decode_error(kind: type[Message], chance: random.Random) -> None:
    values = RandomMessages(chance)
    for version in kind.versions:
        data = values.message(kind, version).encode(version)
        for size in _some_sizes(len(data), chance):
            with pytest.raises(DecodeError):
                kind.decode(data[:size], version)


def _some_sizes(size: int, chance: random.Random) -> list[int]:
    """All of a short message's truncations, and enough of a long one's."""
    return list(range(size)) if size <= 200 else sorted(chance.sample(range(size), 200))


@every_message
def test_only_decode_errors_escape_from_damaged_bytes(kind: type[Message], chance: random.Random) -> None:
    values = RandomMessages(chance)
    for version in kind.versions:
        data = values.message(kind, version).encode(version)
        for _ in range(FUZZ_ROUNDS):
            damaged = _damage(data, chance)
            try:
                kind.decode(damaged, version)
            except DecodeError:
                continue
            except Exception as error:
                raise AssertionError(f"version {version}: {damaged.hex()}") from error


def _damage(data: bytes, chance: random.Random) -> bytes:
    """``data`` with flipped bits, a hostile length written over it, or noise in its place."""
    damaged = bytearray(data)
    if not damaged:
        return chance.randbytes(5)
    place = chance.randrange(len(damaged))
    match chance.randrange(6):
        case 0:
            damaged[place] ^= 1 << chance.randrange(8)
        case 1:
            damaged[place] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        case 2:
            damaged[place : place + 4] = chance.choice(HOSTILE_LENGTHS).to_bytes(4, "big", signed=True)
        case 3:
            damaged[place : place + 2] = chance.choice((-2, -1, 32767, -32768)).to_bytes(
                2, "big", signed=True
            )
        case 4:
            damaged[place : place + 1] = chance.choice(HOSTILE_VARINTS)
        case _:
            damaged[:] = chance.randbytes(len(damaged))
    return bytes(damaged)


@every_message
def test_what_a_version_cannot_carry_is_refused(kind: type[Message], chance: random.Random) -> None:
    values = RandomMessages(chance)
    for version in kind.versions:
        for field, change in lossy_changes(kind, version, values):
            message = kind()
            change(message)
            with pytest.raises(EncodeError, match=field.name):
                message.encode(version)


@every_message
def test_what_may_be_ignored_is_dropped(kind: type[Message], chance: random.Random) -> None:
    values = RandomMessages(chance)
    for version in kind.versions:
        plain = values.message(kind, version)
        data = plain.encode(version)
        for field in kind.declared_fields:
            if version not in field.versions and field.ignorable:
                setattr(plain, field.name, values.other_than_default(field))
        assert plain.encode(version) == data
