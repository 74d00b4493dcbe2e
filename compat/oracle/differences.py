"""Where Ottla does not answer as Kafka does, and why.  Nothing else may differ, and all of this must."""

from typing import Final, NamedTuple

ANYTHING: Final = "anything"
NOTHING: Final = "nothing"


class Known(NamedTuple):
    """A difference that is meant."""

    where: str
    """Subject, conversation and step, as ``fnmatch`` patterns: ``produce: null records: *``."""
    kafka: str
    """What Kafka's answer comes to; see ``outcomes.results_of``."""
    ours: str
    """The same for ours."""
    reason: str
    path: str = ""
    """The one value that differs, where the rest of the answer must not."""


STUCK: Final = "Kafka never answers this, nor what is asked behind it; a client gets an error instead"

OLD_LEVELS: Final = "metadata levels older than that of Kafka 4.0 are not written"

ONE_NAME_TWICE: Final = (
    "the RE2 of C++, which is used here, lets groups share a name; topics are matched without"
)

TASKS_OF_A_REFUSED_ID: Final = (
    "Kafka hands the tasks of the epoch to the former id of a static member as soon as that asks, and then "
    "refuses it: the member itself gets none when it comes back"
)

NO_RANGE: Final = "Kafka names a range that ends before it begins"

FORGOTTEN: Final = "Kafka forgets the group without a record of it, and has it again when it starts anew"

KNOWN: Final = (
    Known("produce: null records: *", "hangs", "INVALID_RECORD", STUCK),
    Known("fetch: topics without name and id: two, waiting", "hangs", "UNKNOWN_SERVER_ERROR", STUCK),
    Known("configs: the same resource twice: *", "hangs", "INVALID_REQUEST", STUCK),
    Known("groups: a protocol named twice: join", "hangs", "INVALID_REQUEST", STUCK),
    Known("consumer_groups: regular expressions: a name twice", ANYTHING, "success", ONE_NAME_TWICE),
    Known(
        "transactional_records: after a stranger was refused: its second",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "success",
        "a batch that was refused for its epoch must not stand in the way of those who may write",
    ),
    Known("share_offsets: partitions that cannot be: unknown", "hangs", "success", STUCK),
    Known(
        "group_migration: a stranger at an empty group: the group",
        "GROUP_ID_NOT_FOUND",
        "success",
        FORGOTTEN,
    ),
    Known(
        "group_migration: a stranger at an empty group: another member",
        "success",
        "success",
        FORGOTTEN,
        "/member_epoch",
    ),
    Known("transactions: adding for no transaction: *", "hangs", "INVALID_REQUEST", STUCK),
    Known("*", "7-33", "25-33", OLD_LEVELS, "/supported_features/metadata.version"),
    Known(
        "features: raising: metadata.version, too high",
        ANYTHING,
        "The update failed for all features since the following feature had an error: Invalid update version "
        "34 for feature metadata.version. Local controller 1 only supports versions 25-33",
        OLD_LEVELS,
        "/error_message",
    ),
    Known("share_fetch: batch sizes: pieces of 0", "success", "success", NO_RANGE),
    Known(
        "streams_members: static members: come back under the same id",
        "success",
        "success",
        TASKS_OF_A_REFUSED_ID,
    ),
)
