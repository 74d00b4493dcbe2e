"""A second opinion on every byte: the ``kio`` package reads what we write, and writes the same again."""

import dataclasses
import io
import pkgutil
import random
import re
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from protocol.primitives import UUID, Array
from protocol.schema import Message, Struct
from tests.protocol.every_message import API_MESSAGES, EVERY_MESSAGE, HEADERS
from tests.protocol.random_messages import RandomMessages

ROUNDS = 3

NEWER_THAN_KIO = {
    ("ApiVersions", 5),
    ("DeleteGroups", 3),
    ("StreamsGroupDescribe", 1),
    ("StreamsGroupHeartbeat", 1),
    ("StreamsGroupTopologyDescriptionUpdate", 0),
    ("TxnOffsetCommit", 6),
    ("UnregisterController", 0),
}
"""Requests and responses of Kafka 4.4 that kio 0.6.5 does not know."""

KNOWN_TO_BROKERS_ONLY = {
    "group_records",
    "metadata_records",
    "share_records",
    "storage_records",
    "transaction_records",
}
"""Modules of stored records: kio has what clients meet, so none of these."""


RENAMED = {
    "acceptable_recovery_lag_legacy": "acceptable_recovery_lag",
    "generation_id_or_member_epoch": "generation_id",
    "kraft_version": "k_raft_version",
    "kraft_version_feature": "k_raft_version_feature",
}
"""Fields that Kafka renamed after kio's schema was made, and one word that kio splits."""


def kio_path(kind: type[Message], version: int) -> str | None:
    """Where kio's class for one version of a message is, which takes long to import, or None."""
    if kind in HEADERS:
        name, entity_type = snake_case(kind.__name__), EntityType.header
    elif kind in API_MESSAGES:
        name = api_key_map.get(kind.api_key, "")
        entity_type = EntityType.request if kind.__name__.endswith("Request") else EntityType.response
    else:
        name, entity_type = snake_case(kind.__name__), EntityType.data
    entities: Mapping[EntityType, str] = schema_name_map.get(name, {}).get(version, {})  # type: ignore[assignment]
    return entities.get(entity_type)


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=K)(?=Raft)", "_", name).lower()


PAIRS = [(kind, version) for kind in EVERY_MESSAGE for version in kind.versions]
COMMON = {(kind, version): path for kind, version in PAIRS if (path := kio_path(kind, version))}


def test_what_kio_lacks_is_known() -> None:
    lacking = [pair for pair in PAIRS if pair not in COMMON]
    newer = {
        (kind.__name__.removesuffix("Request").removesuffix("Response"), version)
        for kind, version in lacking
        if kind in API_MESSAGES
    }
    assert newer == NEWER_THAN_KIO
    stored = {kind.__module__.rpartition(".")[2] for kind, _ in lacking if kind not in API_MESSAGES}
    assert stored == KNOWN_TO_BROKERS_ONLY
    assert len(COMMON) > 600


@pytest.mark.parametrize("kind", dict.fromkeys(kind for kind, _ in COMMON), ids=lambda kind: kind.__name__)
def test_kio_reads_the_same_values_and_writes_the_same_bytes(
    kind: type[Message], chance: random.Random
) -> None:
    for version in kind.versions:
        if (kind, version) in COMMON:
            check_with_kio(kind, version, pkgutil.resolve_name(COMMON[kind, version]), chance)


def check_with_kio(kind: type[Message], version: int, entity: Any, chance: random.Random) -> None:
    read, write = entity_reader(entity), entity_writer(entity)
    values = RandomMessages(chance, tame=True)
    for _ in range(ROUNDS):
        message = values.message(kind, version)
        data = message.encode(version)
        theirs, size = read(data, 0)
        assert size == len(data)
        assert_same(message, theirs, version)
        written = io.BytesIO()
        write(written, theirs)
        assert written.getvalue() == data
        assert kind.decode(data, version) == message


def assert_same(ours: Struct, theirs: Any, version: int) -> None:
    """Field by field, in the order of the wire: names that mean the same, and equal values."""
    live = [field for field in ours.declared_fields if version in field.versions]
    names = [field.name for field in dataclasses.fields(theirs)]
    assert len(live) == len(names)
    for field, name in zip(live, names, strict=True):
        assert same_name(field.name, name)
        assert_same_value(getattr(ours, field.name), getattr(theirs, name), field.type, version)


def same_name(ours: str, theirs: str) -> bool:
    """kio drops units, since its times are not numbers, and avoids Python's keywords."""
    return RENAMED.get(ours, ours.removesuffix("_ms")) == theirs.removesuffix("_") or ours == theirs


def assert_same_value(ours: Any, theirs: Any, kind: Any, version: int) -> None:
    if isinstance(kind, Array) and theirs is not None:
        assert len(ours) == len(theirs)
        for our_entry, their_entry in zip(ours, theirs, strict=True):
            assert_same_value(our_entry, their_entry, kind.of, version)
    elif isinstance(kind, type) and theirs is not None:
        assert_same(ours, theirs, version)
    else:
        assert ours == plain(theirs, kind)


def plain(theirs: Any, kind: Any) -> Any:
    """kio's value as the number or the bytes that travel."""
    match theirs:
        case timedelta():
            return theirs // timedelta(milliseconds=1)
        case datetime():
            return round(theirs.timestamp() * 1000)
        case uuid.UUID():
            return theirs.bytes
        case None if kind is UUID:
            return bytes(16)
        case _:
            return theirs
