"""Limits on what clients may use (KIP-546, KIP-612): altered as a whole request, each entity by itself."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from broker.controller.decision import Decision, check_count
from broker.groups.java_order import in_java_order
from broker.metadata.image import MetadataImage, QuotaEntity
from broker.metadata.records import VersionedRecord
from broker.quotas.keys import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
)
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.metadata_records import ClientQuotaRecord, EntityData

FRACTION_MAX: Final = 1e-6
"""What a whole number may be off."""


class _Kind(NamedTuple):
    """What numbers a quota may have; without ``value_max`` it may be any number above 0."""

    name: str = "DOUBLE"
    value_max: float | None = None


_INT: Final = _Kind("INT", 2**31 - 1)
_LONG: Final = _Kind("LONG", 2.0**63)

_IP_KEYS: Final = {CONNECTION_CREATION_RATE: _INT}
_CLIENT_KEYS: Final = {
    PRODUCER_BYTE_RATE: _LONG,
    CONSUMER_BYTE_RATE: _LONG,
    REQUEST_PERCENTAGE: _Kind(),
    CONTROLLER_MUTATION_RATE: _Kind(),
}


class Alteration(NamedTuple):
    """What shall become of one entity's quotas: pairs of key and value, None to remove one."""

    entity: QuotaEntity
    changes: Sequence[tuple[str, float | None]]


Outcomes = dict[QuotaEntity, KafkaError | None]


def hosts_of(alterations: Sequence[Alteration]) -> list[str]:
    """The names of ip entities: each has to be an address, or that of a host."""
    return [name for alteration in alterations for kind, name in alteration.entity if kind == IP and name]


def alter_quotas(
    image: MetadataImage, alterations: Sequence[Alteration], unknown_hosts: Collection[str] = ()
) -> Decision[Outcomes]:
    """What becomes of each entity; one of them may be refused while others are altered.

    Who is named twice, or has one key changed twice, is told so; what was said first is carried out all the
    same.  ``unknown_hosts`` are those of ``hosts_of`` that have no address.  Raises POLICY_VIOLATION when it
    is too much for one request.
    """
    records: list[VersionedRecord] = []
    outcomes: Outcomes = {}
    for entity, changes in alterations:
        keys = [key for key, _ in changes]
        if entity in outcomes or len(set(keys)) != len(keys):
            outcomes[entity] = _invalid(f"Ignoring duplicate entity {_shown(entity)}")
            continue
        try:
            records += _alter(image.quotas.get(entity, {}), entity, dict(changes), unknown_hosts)
        except KafkaError as error:
            outcomes[entity] = error
        else:
            outcomes[entity] = None
        check_count(records)
    return Decision(records, outcomes)


def _alter(
    current: Mapping[str, float],
    entity: QuotaEntity,
    changes: Mapping[str, float | None],
    unknown_hosts: Collection[str],
) -> list[VersionedRecord]:
    known = _keys_of(dict(entity), unknown_hosts)
    records: list[VersionedRecord] = []
    for key in in_java_order(changes):
        value = changes[key]
        if value is None:
            if key in current:
                records.append((_record(entity, key, 0.0, remove=True), 0))
            continue
        _check(known, key, value)
        if current.get(key) != value:
            records.append((_record(entity, key, value), 0))
    return records


def _keys_of(entity: Mapping[str, str | None], unknown_hosts: Collection[str]) -> Mapping[str, _Kind]:
    """The quotas that such an entity may have; raises INVALID_REQUEST if there can be no such entity."""
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    for kind in in_java_order(entity):
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if entity[kind] == "":
            raise _invalid(f"Empty {kind} not supported")
    if IP not in entity:
        return _CLIENT_KEYS
    if len(entity) > 1:
        raise _invalid(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        )
    if entity[IP] in unknown_hosts:
        raise _invalid(f"{entity[IP]} is not a valid IP or resolvable host.")
    return _IP_KEYS


def _check(known: Mapping[str, _Kind], key: str, value: float) -> None:
    kind = known.get(key)
    if kind is None:
        raise _invalid(f"Invalid configuration key {key}")
    if not math.isfinite(value):
        raise _invalid(f"Quota {key} must be a finite number")
    if value <= 0:
        raise _invalid(f"Quota {key} must be greater than 0")
    if kind.value_max is None:
        return
    if value > kind.value_max:
        article = "an" if kind is _INT else "a"
        raise _invalid(f"Proposed value for {key} is too large for {article} {kind.name}.")
    if value % 1 > FRACTION_MAX:
        raise _invalid(f"{key} cannot be a fractional value.")


def _record(entity: QuotaEntity, key: str, value: float, *, remove: bool = False) -> ClientQuotaRecord:
    parts = dict(entity)
    return ClientQuotaRecord(
        entity=[EntityData(entity_type=kind, entity_name=parts[kind]) for kind in in_java_order(parts)],
        key=key,
        value=value,
        remove=remove,
    )


def _shown(entity: QuotaEntity) -> str:
    parts = dict(entity)
    said = ", ".join(
        f"{kind}={'null' if parts[kind] is None else parts[kind]}" for kind in in_java_order(parts)
    )
    return f"ClientQuotaEntity(entries={{{said}}})"


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
