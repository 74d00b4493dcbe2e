"""How a message is declared: one class holds every version of it, field by field, as data.

A declaration lists the fields in the order of the wire; ``protocol.compiled`` builds a reader and a
writer for one version from it when that version is first used.  Ranges of versions are written as
Kafka's message definitions write them: ``"0-4"``, ``"3+"``, ``"2"`` or ``"none"``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, dataclass_transform

from protocol.primitives import Buffer, WireType

if TYPE_CHECKING:
    from protocol.compiled import Reader, Writer

VERSION_MAX: Final = 32_767


def version_range(text: str) -> range:
    """The versions that ``text`` names."""
    if text == "none":
        return range(0)
    first, dash, last = text.partition("-")
    if text.endswith("+"):
        return range(int(text[:-1]), VERSION_MAX + 1)
    return range(int(first), int(last if dash else first) + 1)


class Field:
    """One field of a struct, in all versions.

    ``tagged`` holds the versions in which the field travels behind the others under its ``tag``;
    ``nullable`` those in which None may be written.  ``flexible`` overrides the message's flexible
    versions (only the client id in a request's header needs that).  A field that is not ignorable
    and not at its default cannot be written in a version outside ``versions``.
    """

    __slots__ = (
        "default",
        "factory",
        "flexible",
        "ignorable",
        "name",
        "nullable",
        "tag",
        "tagged",
        "type",
        "versions",
    )

    def __init__(
        self,
        kind: WireType,
        versions: range,
        *,
        default: object,
        factory: Callable[[], object] | None,
        nullable: range,
        tag: int | None,
        tagged: range,
        ignorable: bool,
        flexible: range | None,
    ) -> None:
        self.name = ""
        self.type = kind
        self.versions = versions
        self.default = default
        self.factory = factory
        self.nullable = nullable
        self.tag = tag
        self.tagged = tagged
        self.ignorable = ignorable
        self.flexible = flexible


_NEVER: Final = range(0)


def wire(
    kind: WireType,
    versions: str,
    *,
    default: object = None,
    factory: Callable[[], object] | None = None,
    nullable: str = "",
    tag: int | None = None,
    tagged: str = "",
    ignorable: bool = False,
    flexible: str = "",
) -> Any:
    """Declare a field; ``factory`` makes the default of arrays and structs."""
    return Field(
        kind,
        version_range(versions),
        default=default,
        factory=factory,
        nullable=version_range(nullable) if nullable else _NEVER,
        tag=tag,
        tagged=version_range(tagged) if tagged else _NEVER,
        ignorable=ignorable,
        flexible=version_range(flexible) if flexible else None,
    )


class StructType(type):
    """Takes the declared fields out of a class body and gives its instances slots for them."""

    declared_fields: tuple[Field, ...]

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> "StructType":
        fields = []
        for key, value in list(namespace.items()):
            if isinstance(value, Field):
                value.name = key
                fields.append(value)
                del namespace[key]
        namespace["__slots__"] = tuple([field.name for field in fields])
        namespace["declared_fields"] = tuple(fields)
        return super().__new__(cls, name, bases, namespace, **options)


@dataclass_transform(kw_only_default=True, field_specifiers=(wire,))
class Struct(metaclass=StructType):
    """A group of fields.  Instances compare by value and are built with keywords."""

    declared_fields: ClassVar[tuple[Field, ...]]

    if not TYPE_CHECKING:

        def __init__(self, **values: object) -> None:
            _compile_constructor(type(self))
            self.__init__(**values)  # the compiled one, found on the class from now on

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in self.declared_fields)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in self.declared_fields)
        return f"{type(self).__name__}({values})"


class Message(Struct):
    """A request, a response, a header or a stored record: a struct that has versions."""

    api_key: ClassVar[int]
    """Key of the API, or type of the stored record; -1 where there is none."""
    versions: ClassVar[range]
    """The versions that Kafka 4.4.0 knows; empty when the API is gone."""
    flexible: ClassVar[range]
    """The versions with compact lengths and tagged fields (KIP-482)."""

    _readers: ClassVar["dict[int, Reader]"]
    _writers: ClassVar["dict[int, Writer]"]

    def __init_subclass__(cls, *, api_key: int = -1, versions: str, flexible: str) -> None:
        cls.api_key = api_key
        cls.versions = version_range(versions)
        cls.flexible = version_range(flexible)
        cls._readers = {}
        cls._writers = {}

    def encode(self, version: int) -> bytes:
        """The bytes of this message; ``EncodeError`` if the version cannot carry a value."""
        parts = self.encode_parts(version)
        if len(parts) != 1:
            raise TypeError("a message with deferred records is encoded with encode_parts")
        return bytes(parts[0])

    def encode_parts(self, version: int, prefix: Buffer = b"") -> list[Any]:
        """``prefix`` and the bytes of this message as a list of parts, the first a ``bytearray``.

        A records field may hold an object that is not bytes but has a ``size_bytes``, such as a
        range of a file: the object itself then becomes a part of the list.
        """
        writer = self._writers.get(version)
        if writer is None:
            from protocol.compiled import compile_writer

            writer = self._writers[version] = compile_writer(type(self), version)
        return writer(self, bytearray(prefix))

    @classmethod
    def decode(cls, buffer: Buffer, version: int) -> Self:
        """The message at the start of ``buffer``; bytes behind it are left alone.

        Records are views of ``buffer``; everything else is copied out of it.
        """
        return cls.decode_from(buffer, 0, version)[0]

    @classmethod
    def decode_from(cls, buffer: Buffer, position: int, version: int) -> tuple[Self, int]:
        """The message at ``position`` and the position behind it; ``DecodeError`` if it is none."""
        reader = cls._readers.get(version)
        if reader is None:
            from protocol.compiled import compile_reader

            reader = cls._readers[version] = compile_reader(cls, version)
        return reader(buffer, position)  # type: ignore[return-value]


def _compile_constructor(cls: type[Struct]) -> None:
    """Give ``cls`` an ``__init__`` with one keyword per field: cheaper than a loop over them."""
    scope: dict[str, Any] = {"made": object()}
    parameters = []
    body = []
    for field in cls.declared_fields:
        if field.factory is not None:
            scope[f"make_{field.name}"] = field.factory
            parameters.append(f"{field.name}=made")
            body.append(
                f"    self.{field.name} = make_{field.name}() if {field.name} is made else {field.name}"
            )
        else:
            scope[f"default_{field.name}"] = field.default
            parameters.append(f"{field.name}=default_{field.name}")
            body.append(f"    self.{field.name} = {field.name}")
    arguments = ", *, " + ", ".join(parameters) if parameters else ""
    exec("\n".join([f"def __init__(self{arguments}):", *(body or ["    pass"])]), scope)
    cls.__init__ = scope["__init__"]  # type: ignore[method-assign]
