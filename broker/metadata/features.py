"""Feature levels: what each release finalizes, what this broker understands, and what a level gates."""

from collections.abc import Mapping
from typing import Final

from broker.metadata.image import ELIGIBLE_LEADER_REPLICAS_VERSION, METADATA_VERSION

KRAFT_VERSION: Final = "kraft.version"
TRANSACTION_VERSION: Final = "transaction.version"
GROUP_VERSION: Final = "group.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"

METADATA_VERSION_NAMES: Final[Mapping[int, str]] = {
    25: "4.0-IV3",
    26: "4.1-IV0",
    27: "4.1-IV1",
    28: "4.2-IV0",
    29: "4.2-IV1",
    30: "4.3-IV0",
    31: "4.4-IV0",
    32: "4.4-IV1",
    33: "4.4-IV2",
}
"""Every level of metadata.version that this broker reads and writes."""

LEVELS_WITH_OTHER_METADATA: Final = frozenset((30, 32, 33))
"""Levels that write what the level before cannot read: nobody may go back below one of them."""

METADATA_VERSION_MIN: Final = min(METADATA_VERSION_NAMES)
METADATA_VERSION_MAX: Final = max(METADATA_VERSION_NAMES)

SUPPORTED_FEATURES: Final[Mapping[str, tuple[int, int]]] = {
    GROUP_VERSION: (0, 1),
    KRAFT_VERSION: (0, 1),
    METADATA_VERSION: (METADATA_VERSION_MIN, METADATA_VERSION_MAX),
    SHARE_VERSION: (0, 2),
    STREAMS_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
    ELIGIBLE_LEADER_REPLICAS_VERSION: (0, 1),
}
"""The lowest and highest level of each feature with which this broker can live."""

_FIRST_DEFAULTS: Final[Mapping[str, tuple[tuple[int, int], ...]]] = {
    ELIGIBLE_LEADER_REPLICAS_VERSION: ((26, 1),),
    GROUP_VERSION: ((22, 1),),
    SHARE_VERSION: ((28, 1), (31, 2)),
    STREAMS_VERSION: ((29, 1),),
    TRANSACTION_VERSION: ((24, 2),),
}
"""Per feature, from which metadata.version which level is a new cluster's default."""

DEAD_LETTERS_SHARE_VERSION: Final = 2
"""From this share.version on, share groups may have a dead letter queue (KIP-1191)."""

CONTROLLER_UNREGISTRATION_LEVEL: Final = 33
"""From here on the registration of a controller can be removed."""

CORDONED_DIRECTORIES_LEVEL: Final = 30
"""From here on brokers tell which of their log directories take no new replicas (KIP-1066)."""


class UnknownFeature(ValueError):
    """A release, a feature or a level that does not exist; the text is for the operator."""


def metadata_version_of_release(text: str) -> int:
    """The level that ``4.4`` (its last one) or ``4.4-IV1`` (exactly that one) names."""
    found = None
    for level, name in METADATA_VERSION_NAMES.items():
        if text == name or text == name.partition("-")[0]:
            found = level
    if found is None:
        raise UnknownFeature(
            f"Unknown metadata.version '{text}'. Supported metadata.version are: "
            + ", ".join(METADATA_VERSION_NAMES.values())
        )
    return found


def default_levels(metadata_version: int) -> dict[str, int]:
    """The levels above 0 that a cluster formatted at this metadata.version has, in the order of its log.

    metadata.version comes first, the others by name.  kraft.version is not among them: it is not a
    record of the metadata log.
    """
    levels = {METADATA_VERSION: metadata_version}
    for feature, steps in _FIRST_DEFAULTS.items():
        reached = [level for since, level in steps if metadata_version >= since]
        if reached:
            levels[feature] = reached[-1]
    return levels


def levels_to_format(metadata_version: int, chosen: Mapping[str, int]) -> dict[str, int]:
    """``default_levels`` with the levels that an operator chose instead; raises ``UnknownFeature``."""
    levels = default_levels(metadata_version)
    for feature, level in chosen.items():
        if feature not in _FIRST_DEFAULTS:
            raise UnknownFeature(
                f"Unsupported feature: {feature}. Supported features are: "
                + ", ".join(sorted({*_FIRST_DEFAULTS, KRAFT_VERSION}))
            )
        low, high = SUPPORTED_FEATURES[feature]
        if not low <= level <= high:
            raise UnknownFeature(f"No feature:{feature} with feature level {level}")
        if level:
            levels[feature] = level
        else:
            levels.pop(feature, None)
    first, *others = levels
    return {name: levels[name] for name in (first, *sorted(others))}


def register_broker_version(metadata_version: int) -> int:
    """The version of RegisterBrokerRecord to write at this level."""
    return 4 if metadata_version >= CORDONED_DIRECTORIES_LEVEL else 3


def writes_cordoned_directories(metadata_version: int) -> bool:
    """Whether brokers tell which of their directories take no new replicas (KIP-1066)."""
    return metadata_version >= CORDONED_DIRECTORIES_LEVEL


def replica_fetch_version(metadata_version: int) -> int:
    """The version of Fetch in which followers ask leaders at this level."""
    return 18 if metadata_version >= 27 else 17


def replica_list_offsets_version(metadata_version: int) -> int:
    """The version of ListOffsets in which followers ask leaders at this level."""
    return 11 if metadata_version >= 29 else 10


PARTITION_RECORD_VERSION: Final = 2
"""Of PartitionRecord and PartitionChangeRecord, since 4.0-IV1: with or without eligible leader replicas."""

DIRECTORIES_CHANGE_VERSION: Final = 2
CORDONED_CHANGE_VERSION: Final = 3
"""Of a BrokerRegistrationChangeRecord that names log directories: those online, or those cordoned."""
