"""Where Ottla is meant to do something else with damaged files than Kafka, and why."""

import re
from typing import Final, NamedTuple


class Explained(NamedTuple):
    """Some differences with one reason."""

    damages: str
    """A pattern that the names of the damages match as a whole."""
    facts: frozenset[str]
    """What is seen differently; "start" is whether the broker starts at all."""
    reason: str


BY_TIME: Final = frozenset({"by time"})
READ: Final = frozenset({"by time", "fetched"})
START: Final = frozenset({"start"})
KEPT: Final = frozenset({"latest", "by time", "end of epoch 0", "fetched", "last batch again", "next batch"})
PRODUCED: Final = frozenset({"last batch again", "next batch"})

ANY: Final = "(unclean, |unclean and never flushed, )?"

EXPLAINED: Final = (
    Explained(
        f"{ANY}a huge length in a middle segment|{ANY}an empty (first|middle) segment",
        BY_TIME,
        "a search goes on with the next segment where one has lost its records; Kafka finds nothing",
    ),
    Explained(
        "(unclean, )?(a short length|an old format) in a middle segment"
        f"|{ANY}an unknown format in a middle segment",
        READ,
        "a header that cannot be one is CORRUPT_MESSAGE, or KAFKA_STORAGE_ERROR if it is that of an old "
        "format; Kafka serves the bytes, or fails with UNKNOWN_SERVER_ERROR",
    ),
    Explained(
        "a huge length in the last segment|(unclean, )?an unknown format in the last segment",
        READ,
        "readers are told of the damage; those of Kafka wait for ever, or get what they cannot read",
    ),
    Explained(
        "(zeros|garbage) behind the last batch",
        START,
        "a log that was closed and is damaged is recovered; Kafka ends",
    ),
    Explained(
        "a torn (last batch|header of the last batch)",
        KEPT,
        "only the torn batch is lost; Kafka takes the segment for empty, and writes over it",
    ),
    Explained(
        "(unclean, )?no time index",
        BY_TIME,
        "a time index that is missing is rebuilt; Kafka takes an empty one, and finds nothing",
    ),
    Explained(
        "(unclean, )?no segments",
        KEPT | {"earliest"},
        "the log goes on at its recovery point, so that no offset is used a second time; Kafka begins at 0",
    ),
    Explained("an empty last segment", PRODUCED, "it can be written to; in Kafka that fails"),
    Explained(
        "no (offset index|indexes)",
        PRODUCED,
        "whether a producer is still known that has expired; nobody may rely on it",
    ),
    Explained(
        f"{ANY}an offset index that (lies|leads behind the end)"
        f"|{ANY}a(n offset| last offset| time) index of garbage",
        READ,
        "an index that cannot be right is rebuilt from the log; Kafka skips records, or fails",
    ),
    Explained(
        f"{ANY}a transaction index of garbage|a list of epochs (of garbage|with a wrong count)",
        START,
        "they are rebuilt from the log; Kafka ends",
    ),
    Explained(
        "an empty topic id|a topic id of (garbage|zeros)",
        START,
        "only that partition is unusable; Kafka ends",
    ),
    Explained("a (segment|swap file) without a number", START, "such a file is left alone; Kafka ends"),
    Explained(
        "unclean, an offset (below its segment|that is too high)",
        START,
        "recovery cuts there; Kafka ends",
    ),
    Explained(
        "alone, (recovery points|log starts|high watermarks|cleaner offsets) of garbage",
        START,
        "a checkpoint that is lost costs a recovery at most; Kafka gives the directory up, and so ends",
    ),
)


def reason_for(damage: str, fact: str) -> str | None:
    """Why Ottla may differ there; None if it may not."""
    for explained in EXPLAINED:
        if fact in explained.facts and re.fullmatch(explained.damages, damage):
            return explained.reason
    return None
