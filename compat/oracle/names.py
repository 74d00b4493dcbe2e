"""Names for what differs from one run to the next: random ids, addresses, and whose turn it was."""

import re
from typing import Final, NamedTuple

from compat.probe import split_address
from protocol.uuids import ZERO_UUID, uuid_from_text, uuid_to_text

DEAD_LETTERS: Final = "dlq."
"""How the topics begin that dead letter queues may have (KIP-1191)."""

OF_ANOTHER: Final = re.compile(r"(dlq\.)?o[0-9a-f]{8}-|barrier-|__transaction_state|__share_group_state")
"""How the names begin that another conversation gave its topics and groups, or that came to be through it."""

MOMENT: Final = re.compile(r"-?\d{13,}")
"""A number that may be a time in milliseconds."""

INT64_MAX: Final = 2**63 - 1

NEAR_MS: Final = 86_400_000
"""Moments no further from the recording than this are told as near to it."""

JAVA_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
"""A random id as member ids hold it."""

KAFKA_UUID: Final = re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])", re.ASCII)
"""The same as Kafka itself writes it, which is how the ids of KIP-848's members look."""

UNNAMED: Final = "<?>"
"""Stands for a random id that has no name yet, while rows are put in order."""


class Origin(NamedTuple):
    """What is true of one broker, and of no other."""

    address: str
    cluster_id: str
    log_dir: str
    began_ms: int
    """Wall clock when the conversations began; what lies after it is called now."""


class Unnamed(NamedTuple):
    """A number that the broker drew, to be replaced by a name: ``<session 1>``."""

    kind: str
    value: int


class Names:
    """The names of one conversation, given in the order in which things are first seen."""

    def __init__(self, prefix: str, origin: Origin) -> None:
        self.prefix = prefix
        self.origin = origin
        host, port = split_address(origin.address)
        self._fixed: dict[str, str] = {
            origin.cluster_id: "<cluster>",
            origin.log_dir: "<log dir>",
            f"{host}:{port}": "<host>:<port>",
        }
        self._known: dict[object, str] = {}
        self._counts: dict[str, int] = {}
        self._texts: dict[str, str] = {}

    def know_topic(self, name: str, topic_id: bytes) -> None:
        """A topic's id is called after the topic."""
        self._know_id(topic_id, f"<id of {name.replace(self.prefix, '')}>")

    def text(self, value: str, *, give: bool) -> str:
        """``value`` with everything named; ``give`` new names, or call the nameless ``UNNAMED``."""
        value = JAVA_UUID.sub(lambda found: self._name("uuid", found[0], give), value)
        value = KAFKA_UUID.sub(lambda found: self._drawn(found[0], give), value)
        value = MOMENT.sub(self._moment, value)
        for known, name in (*self._fixed.items(), *self._texts.items()):
            if known:
                value = value.replace(known, name)
        return value.replace(self.prefix, "")

    def id(self, value: bytes, *, give: bool) -> str:
        """A topic's id, or another 16 bytes that mean one thing."""
        if len(set(value)) == 1:
            return "<no id>" if value == ZERO_UUID else f"<id {value[:1].hex()}…>"
        if value not in self._known and give:
            self._know_id(value, self._next("id"))
        return self._known.get(value, UNNAMED)

    def number(self, value: Unnamed, *, give: bool) -> str:
        return self._name(value.kind, value.value, give)

    def recall(self, kind: str, value: int) -> int | str:
        """The name of a number that the broker has drawn before; any other number is itself."""
        return self._known.get((kind, value), value)

    def address(self, kind: str, value: object) -> object:
        """``host`` or ``port``, if it is the broker's own."""
        host, port = split_address(self.origin.address)
        return f"<{kind}>" if value == {"host": host, "port": port}[kind] else value

    def is_of_another(self, name: str) -> bool:
        return bool(OF_ANOTHER.match(name)) and not name.removeprefix(DEAD_LETTERS).startswith(self.prefix)

    def _drawn(self, text: str, give: bool) -> str:
        """A text that reads like one of Kafka's random ids, by name, if it is one, and nobody's yet."""
        value = uuid_from_text(text)
        is_random = value[6] >> 4 == 4 and value[8] >> 6 == 2 and uuid_to_text(value) == text
        is_named = text in self._texts or text in self._fixed
        return self._name("uuid", text, give) if is_random and not is_named else text

    def _moment(self, found: re.Match[str]) -> str:
        for name, moment in (("<about now>", 0), ("<about now, less all of time>", INT64_MAX)):
            if abs(int(found[0]) - self.origin.began_ms + moment) < NEAR_MS:
                return name
        return found[0]

    def _know_id(self, value: bytes, name: str) -> None:
        self._known[value] = name
        self._texts[uuid_to_text(value)] = name

    def _name(self, kind: str, value: object, give: bool) -> str:
        key = (kind, value)
        if key not in self._known and give:
            self._known[key] = self._next(kind)
        return self._known.get(key, UNNAMED)

    def _next(self, kind: str) -> str:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return f"<{kind} {self._counts[kind]}>"
