"""How large the parts of a message may be.  Beyond a limit the peer's bytes are a ``DecodeError``."""

ARRAY_COUNT_MAX = 1_000_000
"""Entries of one array; the limit that Kafka's own readers have since 4.4."""

TAGGED_FIELD_COUNT_MAX = 10_000
"""Tagged fields of one struct; likewise."""

STRING_SIZE_MAX = 32_767
"""Bytes of one string, in every encoding: a classic string's length is an int16."""
