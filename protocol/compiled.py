"""Readers and writers for one version of a message, compiled from its declaration.

The source of a function is put together once per (message, version), on first use.  Neighbouring
fields of fixed size, and the length of what follows them, share one ``struct`` call; structs in
arrays are read in place rather than by calls.  That is two to five times as fast as walking the
declaration for every message.
"""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from protocol.errors import DecodeError, EncodeError
from protocol.limits import ARRAY_COUNT_MAX, STRING_SIZE_MAX, TAGGED_FIELD_COUNT_MAX
from protocol.primitives import (
    RECORDS,
    SMALL_VARINTS,
    STRING,
    Array,
    Buffer,
    Fixed,
    Sized,
    WireType,
    read_unsigned_varint,
    write_unsigned_varint,
)
from protocol.schema import Field, Message, Struct, StructType

Reader = Callable[[Buffer, int], tuple[Message, int]]
Writer = Callable[[Message, bytearray], list[Any]]


def compile_reader(message: type[Message], version: int) -> Reader:
    """A function that reads ``version`` of ``message`` at a position of a buffer."""
    if version not in message.versions:
        raise DecodeError(f"{message.__name__} has no version {version}")
    return _ReaderSource(message, version).compile()


def compile_writer(message: type[Message], version: int) -> Writer:
    """A function that appends ``version`` of a message to a buffer and returns the parts."""
    if version not in message.versions:
        raise EncodeError(f"{message.__name__} has no version {version}")
    return _WriterSource(message, version).compile()


class _Source:
    """Lines of a function under construction, and the names that it uses."""

    def __init__(self, message: type[Message], version: int) -> None:
        self.message = message
        self.version = version
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {}
        self.depth = 1
        self.counter = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        self.line(opening)
        self.depth += 1
        yield
        self.depth -= 1

    def fresh(self, stem: str) -> str:
        self.counter += 1
        return f"{stem}{self.counter}"

    def constant(self, stem: str, value: object) -> str:
        """A name for ``value`` in the compiled function's globals."""
        for name, known in self.scope.items():
            if known is value and name.startswith(stem):
                return name
        name = self.fresh(f"{stem}_")
        self.scope[name] = value
        return name

    def is_flexible(self, field: Field) -> bool:
        return self.version in (self.message.flexible if field.flexible is None else field.flexible)

    @property
    def flexible(self) -> bool:
        return self.version in self.message.flexible

    def live_fields(self, of: type[Struct]) -> list[Field]:
        """What travels in line in this version, in order."""
        return [f for f in of.declared_fields if self.version in f.versions and self.version not in f.tagged]

    def tagged_fields(self, of: type[Struct]) -> list[Field]:
        fields = [f for f in of.declared_fields if self.version in f.versions and self.version in f.tagged]
        return sorted(fields, key=lambda field: field.tag or 0)

    def finish(self, name: str) -> Any:
        exec("\n".join(self.lines), self.scope)
        return self.scope[name]


class _ReaderSource(_Source):
    """Builds ``read(buffer, p) -> (message, p)``.

    A slice past the end of a buffer is short rather than an error, so lengths are checked against
    ``end``; single bytes and ``struct`` raise by themselves.
    """

    def __init__(self, message: type[Message], version: int) -> None:
        super().__init__(message, version)
        self.pending_codes = ""
        self.pending_targets: list[str] = []
        self.functions: list[list[str]] = []
        self.scope.update(
            new=object.__new__,
            DecodeError=DecodeError,
            read_varint=read_unsigned_varint,
            skip_tags=_skip_tags,
            unpack_from=struct.unpack_from,
            struct_error=struct.error,
            refuse=_refuse_length,
            COUNT_MAX=ARRAY_COUNT_MAX,
            STRING_MAX=STRING_SIZE_MAX,
        )

    def compile(self) -> Reader:
        early = f"raise DecodeError('{self.message.__name__} version {self.version}: bytes end early')"
        self.lines.append("def read(buffer, p):")
        self.line("end = len(buffer)")
        with self.block("try:"):
            self.struct_body(self.message, "o")
            self.flush()
        with self.block("except (IndexError, struct_error) as error:"):
            self.line(f"{early} from error")
        with self.block("if p > end:"):
            self.line(early)
        self.line("return o, p")
        self.lines += [line for function in self.functions for line in function]
        return self.finish("read")  # type: ignore[no-any-return]

    def fixed(self, code: str, target: str) -> None:
        self.pending_codes += code
        self.pending_targets.append(target)

    def flush(self) -> None:
        if self.pending_codes == "B":
            self.line(f"{self.pending_targets[0]} = buffer[p]")
            self.line("p += 1")
        elif self.pending_codes:
            layout = struct.Struct(f">{self.pending_codes}")
            unpack = self.fresh("unpack_")
            self.scope[unpack] = layout.unpack_from
            self.line(f"{', '.join(self.pending_targets)}, = {unpack}(buffer, p)")
            self.line(f"p += {layout.size}")
        self.pending_codes = ""
        self.pending_targets = []

    def struct_body(self, of: type[Struct], target: str) -> None:
        """Make an instance of ``of`` in ``target`` and fill it."""
        self.flush()
        self.line(f"{target} = new({self.constant('type', of)})")
        for field in of.declared_fields:
            if self.version not in field.versions or self.version in field.tagged:
                self.line(f"{target}.{field.name} = {self.default(field)}")
        for field in self.live_fields(of):
            self.value(field, field.type, f"{target}.{field.name}", flexible=self.is_flexible(field))
        if self.flexible:
            self.tags(of, target)

    def default(self, field: Field) -> str:
        if field.factory is list:
            return "[]"
        if field.factory is not None:
            return f"{self.constant('make', field.factory)}()"
        return repr(field.default)

    def value(
        self, field: Field, kind: WireType, target: str, *, flexible: bool, is_tagged: bool = False
    ) -> None:
        nullable = self.version in field.nullable
        if isinstance(kind, Fixed):
            self.fixed(kind.code, target)
        elif isinstance(kind, Sized):
            self.sized(kind, target, flexible=flexible, nullable=nullable)
        elif isinstance(kind, Array):
            self.array(field, kind, target, flexible=flexible, nullable=nullable)
        elif nullable:
            present = self.fresh("present")
            self.fixed("b", present)
            self.flush()
            # In line -1 stands for null, in a tagged field 0; Kafka's generator has it so.
            with self.block(f"if {present} {'==' if is_tagged else '<'} 0:"):
                self.line(f"{target} = None")
            with self.block("else:"):
                inner = self.fresh("o")
                self.struct_body(kind, inner)
                self.flush()
                self.line(f"{target} = {inner}")
        else:
            inner = self.fresh("o")
            self.struct_body(kind, inner)
            self.flush()
            self.line(f"{target} = {inner}")

    def length(self, classic_code: str, *, flexible: bool) -> str:
        """Read a length or count into a new name; -1 (or less) stands for null."""
        name = self.fresh("n")
        if not flexible:
            self.fixed(classic_code, name)
            self.flush()
            return name
        self.fixed("B", name)
        self.flush()
        with self.block(f"if {name} > 127:"):
            self.line(f"{name}, p = read_varint(buffer, p - 1)")
        self.line(f"{name} -= 1")
        return name

    def sized(self, kind: Sized, target: str, *, flexible: bool, nullable: bool) -> None:
        length = self.length(kind.length_code, flexible=flexible)
        end = self.fresh("e")
        with self.block(f"if {length} < 0:"):
            if nullable:
                self.line(f"{target} = None")
            else:
                self.line(f"raise DecodeError('{target.partition('.')[2] or 'an entry'} may not be null')")
        with self.block("else:"):
            self.line(f"{end} = p + {length}")
            limit = f" or {length} > STRING_MAX" if kind is STRING and flexible else ""
            with self.block(f"if {end} > end{limit}:"):
                self.line(f"refuse({length}, p, end)")
            if kind is STRING:
                self.line(f"{target} = str(buffer[p:{end}], 'utf-8', 'replace')")
            elif kind is RECORDS:
                self.scope["memoryview"] = memoryview
                self.line(f"{target} = memoryview(buffer)[p:{end}]")
            else:
                self.line(f"{target} = bytes(buffer[p:{end}])")
            self.line(f"p = {end}")

    def array(self, field: Field, kind: Array, target: str, *, flexible: bool, nullable: bool) -> None:
        count = self.length("i", flexible=flexible)
        with self.block(f"if {count} < 0:"):
            if nullable:
                self.line(f"{target} = None")
            else:
                self.line(f"raise DecodeError('{target.partition('.')[2] or 'an array'} may not be null')")
        with self.block("else:"):
            with self.block(f"if {count} > end - p or {count} > COUNT_MAX:"):
                self.line(f"refuse({count}, p, end)")
            if isinstance(kind.of, Fixed):
                size = struct.calcsize(kind.of.code)
                repeated = (
                    f"'>%d{kind.of.code}' % {count}" if kind.of.code != "16s" else f"'>' + '16s' * {count}"
                )
                with self.block(f"if {count} > (end - p) // {size}:"):
                    self.line(f"refuse({count}, p, end)")
                self.line(f"{target} = list(unpack_from({repeated}, buffer, p))")
                self.line(f"p += {count} * {size}")
                return
            entries = self.fresh("entries")
            self.line(f"{entries} = []")
            with self.block(f"for _ in range({count}):"):
                entry = self.fresh("o")
                if isinstance(kind.of, Sized):
                    self.sized(kind.of, entry, flexible=flexible, nullable=False)
                elif isinstance(kind.of, Array):
                    raise TypeError("Kafka declares no arrays of arrays")
                else:
                    self.struct_body(kind.of, entry)
                    self.flush()
                self.line(f"{entries}.append({entry})")
            self.line(f"{target} = {entries}")

    def tags(self, of: type[Struct], target: str) -> None:
        count = self.fresh("tags")
        self.fixed("B", count)
        self.flush()
        fields = self.tagged_fields(of)
        with self.block(f"if {count}:"):
            if not fields:
                self.line("p = skip_tags(buffer, p - 1, end)")
                return
            self.line(f"p = {self.tag_reader(of, fields)}({target}, buffer, p - 1, end)")

    def tag_reader(self, of: type[Struct], fields: list[Field]) -> str:
        """The name of a function that reads the tagged fields of ``of``."""
        name = self.fresh("read_tags_")
        lines, depth, self.lines, self.depth = self.lines, self.depth, [f"def {name}(o, buffer, p, end):"], 1
        self.scope["TAG_COUNT_MAX"] = TAGGED_FIELD_COUNT_MAX
        self.line("count, p = read_varint(buffer, p)")
        with self.block("if count > TAG_COUNT_MAX:"):
            self.line("refuse(count, p, end)")
        with self.block("for _ in range(count):"):
            self.line("tag, p = read_varint(buffer, p)")
            self.line("size, p = read_varint(buffer, p)")
            self.line("behind = p + size")
            with self.block("if behind > end:"):
                self.line("refuse(size, p, end)")
            for field in fields:
                with self.block(f"if tag == {field.tag}:"):
                    self.value(field, field.type, f"o.{field.name}", flexible=True, is_tagged=True)
                    self.flush()
                    with self.block("if p != behind:"):
                        self.line(f"raise DecodeError('the size of {field.name} is wrong')")
            self.line("p = behind")
        self.line("return p")
        self.functions.append(self.lines)
        self.lines, self.depth = lines, depth
        return name


class _WriterSource(_Source):
    """Builds ``write(message, out) -> parts``."""

    def __init__(self, message: type[Message], version: int) -> None:
        super().__init__(message, version)
        self.pending_codes = ""
        self.pending_values: list[str] = []
        self.functions: list[list[str]] = []
        self.scope.update(
            EncodeError=EncodeError,
            varint=write_unsigned_varint,
            SMALL=SMALL_VARINTS,
            pack=struct.pack,
            struct_error=struct.error,
            join_tags=_join_tags,
            BYTES_TYPES=frozenset({bytes, bytearray, memoryview}),
            STRING_MAX=STRING_SIZE_MAX,
            len=len,
            type=type,
        )

    def compile(self) -> Writer:
        self.lines.append("def write(o, out):")
        with self.block("try:"):
            self.line("parts = []")
            self.struct_body(self.message, "o")
            self.flush()
            self.line("parts.append(out)")
            self.line("return parts")
        with self.block("except EncodeError:"):
            self.line("raise")
        with self.block("except (TypeError, AttributeError, ValueError, struct_error) as error:"):
            what = f"{self.message.__name__} version {self.version}"
            self.line(f"raise EncodeError(f'{what}: {{error}}') from error")
        self.lines += [line for function in self.functions for line in function]
        return self.finish("write")  # type: ignore[no-any-return]

    def fixed(self, code: str, value: str) -> None:
        self.pending_codes += code
        self.pending_values.append(value)

    def zero_byte(self) -> None:
        self.pending_codes += "x"

    def flush(self) -> None:
        if not self.pending_codes:
            return
        if not self.pending_values:
            self.line(f"out += {bytes(len(self.pending_codes))!r}")
        else:
            pack = self.fresh("pack_")
            self.scope[pack] = struct.Struct(f">{self.pending_codes}").pack
            self.line(f"out += {pack}({', '.join(self.pending_values)})")
        self.pending_codes = ""
        self.pending_values = []

    def struct_body(self, of: type[Struct], source: str) -> None:
        for field in of.declared_fields:
            if self.version not in field.versions and not field.ignorable:
                self.refuse_lost(field, source)
        for field in self.live_fields(of):
            self.value(field, field.type, f"{source}.{field.name}", flexible=self.is_flexible(field))
        if self.flexible:
            self.tags(of, source)

    def refuse_lost(self, field: Field, source: str) -> None:
        with self.block(f"if {self.differs_from_default(field, f'{source}.{field.name}')}:"):
            self.line(
                f"raise EncodeError('{self.message.__name__} version {self.version} has no {field.name}')"
            )

    def differs_from_default(self, field: Field, value: str) -> str:
        """An expression, never without parentheses around an ``or``."""
        if field.factory is list:
            return f"({value} or {value} is None)" if field.nullable else value
        if isinstance(field.type, StructType) and field.factory is not None:
            inner = [
                self.differs_from_default(part, f"{value}.{part.name}") for part in field.type.declared_fields
            ]
            if field.nullable:
                inner.insert(0, f"{value} is None")
            return f"({' or '.join(inner)})"
        if field.default is None:
            return f"{value} is not None"
        return f"{value} != {field.default!r}"

    def value(
        self, field: Field, kind: WireType, value: str, *, flexible: bool, is_tagged: bool = False
    ) -> None:
        nullable = self.version in field.nullable
        if isinstance(kind, Fixed):
            self.fixed(kind.code, value)
        elif isinstance(kind, Sized):
            self.sized(kind, value, flexible=flexible, nullable=nullable)
        elif isinstance(kind, Array):
            self.array(kind, value, flexible=flexible, nullable=nullable)
        else:
            inner = self.fresh("o")
            self.flush()
            self.line(f"{inner} = {value}")
            if not nullable:
                self.struct_body(kind, inner)
                self.flush()
                return
            with self.block(f"if {inner} is None:"):
                null = b"\0" if is_tagged else b"\xff"
                self.line(f"out += {null!r}")
            with self.block("else:"):
                self.line("out += b'\\x01'")
                self.struct_body(kind, inner)
                self.flush()

    def length(self, name: str, classic_code: str, *, flexible: bool) -> None:
        """Write the length held in ``name``."""
        if flexible:
            self.flush()
            self.line(f"out += SMALL[{name} + 1] if {name} < 127 else varint({name} + 1)")
        else:
            self.fixed(classic_code, name)

    def null(self, classic_code: str, *, flexible: bool) -> None:
        null = b"\0" if flexible else b"\xff" * struct.calcsize(classic_code)
        self.line(f"out += {null!r}")

    def sized(self, kind: Sized, value: str, *, flexible: bool, nullable: bool) -> None:
        if kind is RECORDS:
            self.records(value, flexible=flexible, nullable=nullable)
            return
        content = self.fresh("s")
        size = self.fresh("n")
        if not nullable:
            self.content(kind, content, size, value)
            self.length(size, kind.length_code, flexible=flexible)
            self.flush()
            self.line(f"out += {content}")
            return
        self.flush()
        with self.block(f"if {value} is None:"):
            self.null(kind.length_code, flexible=flexible)
        with self.block("else:"):
            self.content(kind, content, size, value)
            self.length(size, kind.length_code, flexible=flexible)
            self.flush()
            self.line(f"out += {content}")

    def content(self, kind: Sized, content: str, size: str, value: str) -> None:
        if kind is STRING:
            self.line(f"{content} = {value}.encode()")
            self.line(f"{size} = len({content})")
            with self.block(f"if {size} > STRING_MAX:"):
                self.line(f"raise EncodeError('a string has %d bytes' % {size})")
        else:
            self.line(f"{content} = {value}")
            self.line(f"{size} = len({content})")

    def records(self, value: str, *, flexible: bool, nullable: bool) -> None:
        """Bytes are written in line; anything else becomes a part of its own."""
        self.flush()
        records = self.fresh("r")
        self.line(f"{records} = {value}")
        with self.block(f"if {records} is None:"):
            if nullable:
                self.null("i", flexible=flexible)
            else:
                self.line(f"raise EncodeError('{value.partition('.')[2]} may not be null')")
        with self.block(f"elif type({records}) in BYTES_TYPES:"):
            size = self.fresh("n")
            self.line(f"{size} = len({records})")
            self.length(size, "i", flexible=flexible)
            self.flush()
            self.line(f"out += {records}")
        with self.block("else:"):
            size = self.fresh("n")
            self.line(f"{size} = {records}.size_bytes")
            self.length(size, "i", flexible=flexible)
            self.flush()
            self.line("parts.append(out)")
            self.line(f"parts.append({records})")
            self.line("out = bytearray()")

    def array(self, kind: Array, value: str, *, flexible: bool, nullable: bool) -> None:
        self.flush()
        entries = self.fresh("entries")
        self.line(f"{entries} = {value}")
        if nullable:
            with self.block(f"if {entries} is None:"):
                self.null("i", flexible=flexible)
            with self.block("else:"):
                self.entries(kind, entries, flexible=flexible)
        else:
            self.entries(kind, entries, flexible=flexible)

    def entries(self, kind: Array, entries: str, *, flexible: bool) -> None:
        count = self.fresh("n")
        self.line(f"{count} = len({entries})")
        self.length(count, "i", flexible=flexible)
        self.flush()
        if isinstance(kind.of, Fixed):
            repeated = f"'>%d{kind.of.code}' % {count}" if kind.of.code != "16s" else f"'>' + '16s' * {count}"
            self.line(f"out += pack({repeated}, *{entries})")
            return
        entry = self.fresh("o")
        with self.block(f"for {entry} in {entries}:"):
            if isinstance(kind.of, Sized):
                self.sized(kind.of, entry, flexible=flexible, nullable=False)
            elif isinstance(kind.of, Array):
                raise TypeError("Kafka declares no arrays of arrays")
            else:
                self.struct_body(kind.of, entry)
                self.flush()
                if self.lines[-1].strip().startswith("for "):
                    self.line("pass")

    def tags(self, of: type[Struct], source: str) -> None:
        fields = self.tagged_fields(of)
        if not fields:
            self.zero_byte()
            return
        self.flush()
        written = f"{self.tag_writer(fields)}({source})"
        differ = " or ".join([self.differs_from_default(field, f"{source}.{field.name}") for field in fields])
        self.line(f"out += {written} if {differ} else b'\\0'")

    def tag_writer(self, fields: list[Field]) -> str:
        """The name of a function that gives the tagged fields of a struct, not all at their defaults, as
        bytes."""
        name = self.fresh("write_tags_")
        lines, depth, self.lines, self.depth = self.lines, self.depth, [f"def {name}(o):"], 1
        self.line("tagged = []")
        for field in fields:
            with self.block(f"if {self.differs_from_default(field, f'o.{field.name}')}:"):
                self.line("out = bytearray()")
                self.value(field, field.type, f"o.{field.name}", flexible=True, is_tagged=True)
                self.flush()
                self.line(f"tagged.append(({field.tag}, out))")
        self.line("return join_tags(tagged)")
        self.functions.append(self.lines)
        self.lines, self.depth = lines, depth
        return name


def _skip_tags(buffer: Buffer, position: int, end: int) -> int:
    """Pass over tagged fields that nobody here knows."""
    count, position = read_unsigned_varint(buffer, position)
    if count > TAGGED_FIELD_COUNT_MAX:
        _refuse_length(count, position, end)
    for _ in range(count):
        _, position = read_unsigned_varint(buffer, position)
        size, position = read_unsigned_varint(buffer, position)
        position += size
        if position > end:
            _refuse_length(size, position, end)
    return position


def _join_tags(tagged: list[tuple[int, bytearray]]) -> bytes:
    joined = bytearray(write_unsigned_varint(len(tagged)))
    for tag, content in tagged:
        joined += write_unsigned_varint(tag) + write_unsigned_varint(len(content)) + content
    return bytes(joined)


def _refuse_length(length: int, position: int, end: int) -> None:
    raise DecodeError(f"a length of {length} at byte {position} of {end} is too large")
