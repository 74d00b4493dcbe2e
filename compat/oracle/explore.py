"""Looking for differences that no conversation is about: one request of one is changed a little, at random.

Both brokers are told the same, and whatever they then answer differently is printed with its seed.  That is
for people to look at; what matters becomes a step of a conversation.
"""

import copy
import random
import secrets
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, Final, NamedTuple

from compat.oracle.compare import in_words, judge
from compat.oracle.connection import PATIENCE_SECONDS
from compat.oracle.conversation import Conversation
from compat.oracle.names import Origin
from compat.oracle.recording import Place, Recording, Told
from compat.oracle.run import get_ready
from compat.oracle.talk import ORACLE, Talk
from protocol.primitives import BOOL, BYTES, RECORDS, STRING, UUID, Array, Fixed, WireType
from protocol.schema import Field, Message, Struct

PATIENCE: Final = 4.0
"""Long waits are part of no conversation, so that a broker which is silent for so many seconds is stuck."""

WORKERS: Final = 6

TRIES_MAX: Final = 50

TOLD_MAX: Final = 4
"""Differences that are shown of one conversation: the first ones tell the most."""

NUMBERS: Final = (-2, -1, 0, 1, 2, 3, 5, 7, 100)

LEFT_ALONE: Final = frozenset(
    (
        "allow_auto_topic_creation",  # what is unknown to all conversations must stay so
        "broker_id",  # whoever is unregistered by mistake was the only one
        "components",  # a filter that lets everything through shows what others have
        "count",  # ten thousand partitions are too many for a small Kafka
        "entity_name",  # the quota of everybody holds for all conversations
        "key_type",
        "max_wait_ms",
        "rebalance_timeout_ms",
        "session_id",  # Kafka fails on some that it never gave out
        "session_timeout_ms",
        "timeout_ms",
    )
)
"""Fields that are not changed."""


class Try(NamedTuple):
    """One change to one request."""

    seed: int
    held: Conversation
    turn: int
    step: int
    """Which of the requests is changed, counted from 0."""


class Stray(Talk):
    """A conversation in which one request is not as it should be."""

    def __init__(self, attempt: Try, origin: Origin) -> None:
        super().__init__(attempt.held, attempt.turn, origin, secrets.token_hex(4))
        self.changed = ""
        """What was changed."""
        self._chance = random.Random(attempt.seed)
        self._until_change = attempt.step

    def start(self, label: str, request: Message, *, by: str = ORACLE, version: int | None = None) -> None:
        if self._until_change == 0:
            request = copy.deepcopy(request)
            self.changed = f"{label}: {change(request, self._chance)}"
        self._until_change -= 1
        super().start(label, request, by=by, version=version)

    def finish(self, label: str, *, patience_seconds: float = PATIENCE_SECONDS) -> Any:
        return super().finish(label, patience_seconds=min(patience_seconds, PATIENCE))

    def recording(self) -> Recording:
        return {
            Place(self.held.subject, self.held.name, step.label, self.turn): Told(
                step.api, step.version, step.outcome
            )
            for step in self.steps
        }


def explore(
    addresses: tuple[str, str],
    conversations: Sequence[Conversation],
    recorded: Recording,
    seed: int,
    count: int,
) -> Iterator[str]:
    """Make ``count`` changes, from ``seed`` on; a report of each that Kafka and Ottla answer differently."""
    kafka, ottla = (get_ready(address) for address in addresses)
    mine = [each for each in conversations if not each.alone]
    sizes = Counter((place.subject, place.conversation, place.round) for place in recorded)

    def attempt(number: int) -> str:
        chance = random.Random(number)
        held = chance.choice(mine)
        turn = chance.choice(held.rounds)
        size = sizes[held.subject, held.name, turn]
        tried = Try(number, held, turn, chance.randrange(max(size, 1)))
        expected, found = (play(tried, origin) for origin in (kafka, ottla))
        differing = judge(expected.recording(), found.recording()).unexplained
        if not expected.changed or not differing:
            return ""
        lines = [f"seed {number}: {held.subject}: {held.name}: round {turn}: {expected.changed}"]
        return "\n    ".join([*lines, *islice(in_words(differing), TOLD_MAX)])

    with ThreadPoolExecutor(WORKERS) as workers:
        yield from filter(None, workers.map(attempt, range(seed, seed + count)))


def play(attempt: Try, origin: Origin) -> Stray:
    """Hold the conversation as far as it goes: one that waits for what cannot come any more stops there."""
    stray = Stray(attempt, origin)
    try:
        attempt.held.hold(stray)
    except (AssertionError, IndexError):
        pass
    finally:
        stray.close()
    return stray


def change(request: Message, chance: random.Random) -> str:
    """Change one field; returns which, and how."""
    for _ in range(TRIES_MAX):
        owner, field = chance.choice(list(fields_of(request)))
        if field.name in LEFT_ALONE:
            continue
        old = getattr(owner, field.name)
        new = other_value(field.type, old, chance)
        if new != old and not (field.name == "group_id" and new == ""):
            setattr(owner, field.name, new)
            return f"{type(owner).__name__}.{field.name} is {new!r:.80}, not {old!r:.80}"
    return "nothing is changed"


def fields_of(owner: Struct) -> Iterator[tuple[Struct, Field]]:
    """Every field of a message, those of the structs in it included."""
    for field in owner.declared_fields:
        yield owner, field
        value = getattr(owner, field.name)
        for inner in value if isinstance(value, list) else (value,):
            if isinstance(inner, Struct):
                yield from fields_of(inner)


def other_value(kind: WireType, old: Any, chance: random.Random) -> Any:
    """Something else that a field of this type can hold; it need not make sense."""
    if isinstance(kind, Array):
        values = list(old or ())
        extra = [chance.choice(values)] if values else []
        added = kind.of() if isinstance(kind.of, type) else other_value(kind.of, None, chance)
        return chance.choice([[], None, values + extra, values[::-1], [*values, added]])
    if isinstance(kind, type):
        return kind()
    if kind is RECORDS:
        return flipped(old, chance) if old else chance.choice([b"", b"x"])
    choices: dict[WireType, tuple[Any, ...]] = {
        BOOL: (not old,),
        STRING: (None, "", f"{old}x"),
        BYTES: (b"", b"x", b"\0\1"),
        UUID: (bytes(16), bytes(15) + b"\1", b"\x77" * 16),
    }
    if kind in choices:
        return chance.choice(choices[kind])
    assert isinstance(kind, Fixed)
    bits = 8 * struct.calcsize(kind.code)
    return chance.choice([*NUMBERS, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))])


def flipped(data: bytes, chance: random.Random) -> bytes:
    """``data`` with one bit changed."""
    changed = bytearray(data)
    changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)
