"""How large the parts of a message may be.  Beyond a limit the peer's bytes are a ``DecodeError``."""

ARRAY_COUNT_MAX = 1_000_000
"""Entries of one array; the limit that Kafka's own readers have since 4.4."""

TAGGED_FIELD_COUNT_MAX = 10_000
"""Tagged fields of one struct; likewise."""

STRING_SIZE_MAX = 32_767
"""Bytes of one string, in every encoding: a classic string's length is an int16."""

RECORDS_SIZE_MAX = 128 << 20
"""Bytes of one batch's records when decompressed.  Kafka has no such limit; a producer beyond ours
gets MESSAGE_TOO_LARGE, which makes it split the batch."""

RECORD_ERRORS_MAX = 10_000
"""Records that a Produce answer names as refused, per partition; the batch is refused either way."""
