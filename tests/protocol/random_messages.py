"""Random values for any message, as far as one of its versions can carry them."""

import random
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from protocol.error_codes import ErrorCode
from protocol.primitives import BOOL, FLOAT64, RECORDS, STRING, UUID, Array, Fixed, Sized, WireType
from protocol.schema import Field, Message, Struct

M = TypeVar("M", bound=Message)

INTEGER_BITS = {"b": 8, "h": 16, "H": 16, "i": 32, "I": 32, "q": 64}
LETTERS = "abz-._ 019éß漢字🐘\0"


class RandomMessages:
    """Makes messages whose fields hold anything that their types and a version allow.

    With ``tame``, error codes are known ones and times are plausible, for decoders that turn them
    into richer types and refuse the rest.
    """

    def __init__(self, chance: random.Random, *, tame: bool = False) -> None:
        self.chance = chance
        self.tame = tame

    def message(self, kind: type[M], version: int) -> M:
        made = self.struct(kind, version)
        assert isinstance(made, kind)
        return made

    def struct(self, kind: type[Struct], version: int) -> Struct:
        live = [field for field in kind.declared_fields if version in field.versions]
        return kind(**{field.name: self.value(field, version) for field in live})

    def value(self, field: Field, version: int) -> Any:
        if version in field.nullable and self.chance.random() < 0.2:
            return None
        if version in field.tagged and self.chance.random() < 0.3:
            return field.factory() if field.factory else field.default
        return self.of_type(field.type, field.name, version)

    def of_type(self, kind: WireType, name: str, version: int) -> Any:
        if isinstance(kind, Array):
            return [self.of_type(kind.of, name, version) for _ in range(self.chance.choice((0, 1, 1, 2, 3)))]
        if isinstance(kind, Fixed):
            return self.fixed(kind, name)
        if isinstance(kind, Sized):
            return self.sized(kind)
        return self.struct(kind, version)

    def fixed(self, kind: Fixed, name: str) -> Any:
        if kind is BOOL:
            return self.chance.random() < 0.5
        if kind is FLOAT64:
            return self.chance.choice((0.0, -1.5, self.chance.uniform(-1e9, 1e9), float("inf")))
        if kind is UUID:
            return self.chance.choice((bytes(16), self.chance.randbytes(16), self.chance.randbytes(16)))
        if self.tame and name.endswith("error_code"):
            return int(self.chance.choice(TAME_ERROR_CODES))
        if self.tame and ("time" in name or name.endswith("_ms") or "timestamp" in name):
            return self.chance.randrange(2**31)
        return self.integer(kind)

    def integer(self, kind: Fixed) -> int:
        bits = INTEGER_BITS[kind.code]
        unsigned = kind.code.isupper()
        lowest, highest = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        edges = (lowest, highest, 0, 1, highest if unsigned else -1)
        return self.chance.choice((*edges, self.chance.randint(lowest, highest), self.chance.randrange(100)))

    def sized(self, kind: Sized) -> Any:
        size = self.chance.choice((0, 1, 5, 20, self.chance.randrange(200)))
        if kind is STRING:
            return "".join(self.chance.choices(LETTERS, k=size))
        content = self.chance.randbytes(size)
        return memoryview(content) if kind is RECORDS and self.chance.random() < 0.5 else content

    def other_than_default(self, field: Field) -> Any:
        """A value of the field that is not its default."""
        return _other_than(field.factory() if field.factory else field.default, field.type, self)


TAME_ERROR_CODES = [code for code in ErrorCode if -1 <= code <= 100]


def lossy_changes(
    kind: type[Struct], version: int, values: RandomMessages
) -> Iterator[tuple[Field, Callable[[Any], None]]]:
    """Each field that ``version`` cannot carry and may not drop, with a change that sets it.

    A change takes a message of ``kind``, fills the arrays and structs on the way to the field, and
    gives the field a value other than its default.
    """
    for field in kind.declared_fields:
        if version not in field.versions:
            if not field.ignorable:
                yield field, _setter(field, values)
            continue
        inner = field.type.of if isinstance(field.type, Array) else field.type
        if isinstance(inner, type) and issubclass(inner, Struct):
            for lost, change in lossy_changes(inner, version, values):
                yield lost, _reach(field, inner, change)


def _reach(field: Field, inner: type[Struct], change: Callable[[Any], None]) -> Callable[[Any], None]:
    def apply(target: Any) -> None:
        entry = inner()
        change(entry)
        setattr(target, field.name, [entry] if isinstance(field.type, Array) else entry)

    return apply


def _setter(field: Field, values: RandomMessages) -> Callable[[Any], None]:
    def apply(target: Any) -> None:
        setattr(target, field.name, values.other_than_default(field))

    return apply


def _other_than(default: object, kind: WireType, values: RandomMessages) -> Any:
    if isinstance(kind, Array):
        return [_other_than(object(), kind.of, values)]
    if isinstance(kind, type):
        changed = kind()
        for field in changed.declared_fields:
            setattr(changed, field.name, values.other_than_default(field))
        return changed
    for _ in range(100):
        value = values.of_type(kind, "", 0)
        if value != default:
            return value
    raise AssertionError(f"no value of {kind} differs from {default!r}")
