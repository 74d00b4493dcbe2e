"""Whether our declarations say what the message definitions inside Kafka's jars say."""

import importlib
import json
import pkgutil
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import protocol.headers
import protocol.messages
import protocol.principal
import protocol.stored
from protocol.primitives import (
    BOOL,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UINT16,
    UINT32,
    UUID,
    Array,
    WireType,
)
from protocol.schema import Field, Message, Struct, version_range

SCALARS: dict[str, WireType] = {
    "bool": BOOL,
    "bytes": BYTES,
    "float64": FLOAT64,
    "int8": INT8,
    "int16": INT16,
    "int32": INT32,
    "int64": INT64,
    "records": RECORDS,
    "string": STRING,
    "uint16": UINT16,
    "uint32": UINT32,
    "uuid": UUID,
}

Definition = dict[str, Any]


def definitions(jars: Path) -> Iterator[Definition]:
    """Every message definition of Kafka that has a version left."""
    for jar in sorted(jars.glob("kafka-*.jar")):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if re.fullmatch(r"(common/)?(message|metadata)/\w+\.json", name):
                    text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                    definition: Definition = json.loads(re.sub(r"\s//\s.*$", "", text, flags=re.MULTILINE))
                    if definition["validVersions"] != "none":
                        yield definition


def declarations() -> dict[str, type[Message]]:
    """Our messages by Kafka's names."""
    modules = [protocol.headers, protocol.principal]
    for package in (protocol.messages, protocol.stored):
        for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            modules.append(importlib.import_module(info.name))
    found = {}
    for module in modules:
        for name, value in vars(module).items():
            if isinstance(value, type) and issubclass(value, Message) and value.__module__ == module.__name__:
                found[name] = value
    return found


def differences(jars: Path) -> list[str]:
    """What our declarations say otherwise than Kafka's definitions, in words."""
    declared = {squashed(name): message for name, message in declarations().items() if message.versions}
    found = []
    for definition in definitions(jars):
        name = definition["name"]
        message = declared.pop(squashed(name), None)
        if message is None:
            found.append(f"{name} is not declared")
            continue
        structs = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", [])}
        versions = version_range(definition["validVersions"])
        found += compare_headings(name, message, definition, versions)
        found += compare_fields(name, message, definition["fields"], structs, versions)
    found += [
        f"{message.__name__} is declared, but Kafka has no such message" for message in declared.values()
    ]
    return found


def squashed(name: str) -> str:
    return name.replace("_", "").lower()


def compare_headings(
    name: str, message: type[Message], definition: Definition, versions: range
) -> Iterator[str]:
    if message.versions != versions:
        yield f"{name}: versions {message.versions}, not {versions}"
    flexible = version_range(definition["flexibleVersions"])
    if members(message.flexible, versions) != members(flexible, versions):
        yield f"{name}: flexible versions {message.flexible}, not {flexible}"
    if message.api_key != definition.get("apiKey", -1):
        yield f"{name}: key {message.api_key}, not {definition.get('apiKey', -1)}"


def members(versions: range, among: range) -> list[int]:
    return [version for version in among if version in versions]


def compare_fields(
    path: str,
    struct: type[Struct],
    fields: list[Definition],
    structs: dict[str, list[Definition]],
    valid: range,
) -> Iterator[str]:
    """Kafka's fields that no valid version has are left out on both sides."""
    wanted = [field for field in fields if members(version_range(versions_of(field)), valid)]
    ours = [field for field in struct.declared_fields if members(field.versions, valid)]
    if [squashed(field.name) for field in ours] != [squashed(field["name"]) for field in wanted]:
        yield f"{path}: fields {[field.name for field in ours]}, not {[field['name'] for field in wanted]}"
        return
    for mine, theirs in zip(ours, wanted, strict=True):
        yield from compare_field(f"{path}.{theirs['name']}", mine, theirs, structs, valid)


def compare_field(
    path: str, ours: Field, theirs: Definition, structs: dict[str, list[Definition]], valid: range
) -> Iterator[str]:
    kind, inner = theirs["type"], theirs["type"].removeprefix("[]")
    facts: list[tuple[str, object, object]] = [
        ("versions", members(ours.versions, valid), members(version_range(versions_of(theirs)), valid)),
        ("nullable", members(ours.nullable, valid), members_of(theirs.get("nullableVersions"), valid)),
        ("tagged", members(ours.tagged, valid), members_of(theirs.get("taggedVersions"), valid)),
        ("tag", ours.tag, theirs.get("tag")),
        ("ignorable", ours.ignorable, theirs.get("ignorable", False)),
        ("an array", isinstance(ours.type, Array), kind.startswith("[]")),
    ]
    if "flexibleVersions" in theirs:
        own = version_range(theirs["flexibleVersions"])
        facts.append(("flexible versions of its own", ours.flexible, own))
    mine = ours.type.of if isinstance(ours.type, Array) else ours.type
    if inner in SCALARS:
        facts.append(("type", mine, SCALARS[inner]))
    default = ours.factory() if ours.factory else ours.default
    facts.append(("default", default, default_of(theirs, mine)))
    for what, have, want in facts:
        if have != want or (what == "default" and type(have) is not type(want)):
            yield f"{path}: {what} {have!r}, not {want!r}"
    if inner not in SCALARS:
        fields = theirs.get("fields") or structs[inner]
        if isinstance(mine, type) and issubclass(mine, Struct):
            live = [version for version in valid if version in version_range(versions_of(theirs))]
            yield from compare_fields(path, mine, fields, structs, range(live[0], live[-1] + 1))
        else:
            yield f"{path}: type {mine!r}, not a struct"


def versions_of(field: Definition) -> str:
    """A field that names no versions but those in which it is tagged has no others."""
    versions = field.get("versions") or field["taggedVersions"]
    assert isinstance(versions, str)
    return versions


def members_of(versions: str | None, valid: range) -> list[int]:
    return members(version_range(versions), valid) if versions else []


def default_of(field: Definition, inner: WireType) -> object:
    """The default that a definition states or implies; a bare ``null`` says nothing to Kafka's generator."""
    kind = field["type"]
    text = field.get("default")
    if text == "null" or (kind == "records" and text is None):
        return None
    if kind.startswith("[]"):
        return []
    if kind == "bool":
        return str(text).lower() == "true"
    if kind in ("string", "bytes"):
        return text or ("" if kind == "string" else b"")
    if kind == "float64":
        return float(text or 0)
    if kind == "uuid":
        return bytes(16)
    if kind.startswith(("int", "uint")):
        return int(str(text or 0), 0)
    assert isinstance(inner, type)
    return inner()
