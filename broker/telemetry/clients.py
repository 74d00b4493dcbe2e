"""Which metrics are wanted of which client, and when it may deliver them (KIP-714).

Nothing here receives metrics yet: what clients deliver is checked and passed over, as in a Kafka that has no
plugin for them.  So these APIs are answered and not announced.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from broker.config.client_patterns import ClientPattern, client_pattern
from broker.config.definitions import Scope, definition
from broker.groups.java_order import in_java_order, uuid_hash
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.records.checksum import crc32c
from protocol.records.compression import Bytes, Compression, decompress
from protocol.records.errors import CorruptRecords
from protocol.uuids import uuid_to_text

CLIENTS_MAX: Final = 16_384
"""Clients that are remembered; whoever was not heard of for longest is forgotten then, and begins anew."""

REMEMBERED_MS: Final = 60_000
"""How long a client is remembered at least; else for as long as it takes to deliver three times."""

EVERYTHING: Final = "*"
"""A subscription to this wants all metrics."""

Settings = Mapping[str, str]
"""Of one subscription, as an operator has set them."""


class Subscription(NamedTuple):
    """What an operator wants to be told by the clients that match."""

    metrics: tuple[str, ...]
    """How the names of the metrics begin."""
    interval_ms: int
    matches: Mapping[str, ClientPattern | None]
    """By names of attributes; without any, every client is meant, and with None none: that is what becomes of
    an expression that only a Kafka before us has understood."""

    @classmethod
    def parse(cls, settings: Settings) -> "Subscription":
        """From valid settings."""

        def value(name: str) -> Any:
            known = definition(Scope.CLIENT_METRICS, name)
            return known.parse(settings[name]) if name in settings else known.default

        metrics, interval_ms, match = value("metrics"), value("interval.ms"), value("match")
        pairs = (pattern.split("=") for pattern in match)
        matches = {name.strip(): client_pattern(text.strip()) for name, text in pairs}
        return cls(metrics, interval_ms, matches)

    def is_for(self, attributes: Mapping[str, str | None]) -> bool:
        return all(
            pattern and (value := attributes.get(name)) is not None and pattern.fullmatch(value)
            for name, pattern in self.matches.items()
        )


class Client:
    """One client, from its first request on."""

    __slots__ = (
        "attributes",
        "expires_ms",
        "interval_ms",
        "is_ending",
        "last_asked_ms",
        "last_delivered_ms",
        "last_error",
        "metrics",
        "subscription_id",
        "version",
    )

    def __init__(
        self,
        client_id: bytes,
        attributes: Mapping[str, str | None],
        wanted: Iterable[Subscription],
        version: int,
    ) -> None:
        """``wanted``: all subscriptions, in Kafka's order; ``version`` counts their changes."""
        self.attributes = attributes
        self.version = version
        mine = [subscription for subscription in wanted if subscription.is_for(attributes)]
        names = dict.fromkeys(name for one in mine for name in in_java_order(dict.fromkeys(one.metrics)))
        self.metrics = [EVERYTHING] if EVERYTHING in names else in_java_order(names)
        default_ms: Any = definition(Scope.CLIENT_METRICS, "interval.ms").default
        self.interval_ms = min((default_ms, *(subscription.interval_ms for subscription in mine)))
        self.subscription_id = _subscription_id(client_id, self.metrics, self.interval_ms)
        self.last_asked_ms = 0
        self.last_delivered_ms = 0
        self.last_error = ErrorCode.NONE
        self.is_ending = False
        self.expires_ms = 0

    def may_ask(self, now_ms: int) -> bool:
        if now_ms - max(self.last_asked_ms, self.last_delivered_ms) < self.interval_ms:
            return False
        self.last_asked_ms = now_ms
        return True

    def may_deliver(self, now_ms: int) -> bool:
        """At any time after it has asked, since clients spread their deliveries; else once an interval."""
        has_just_asked = self.last_asked_ms > self.last_delivered_ms
        if not has_just_asked and now_ms - self.last_delivered_ms < self.interval_ms:
            return False
        self.last_delivered_ms = now_ms
        return True


class Delivery(NamedTuple):
    """Metrics that a client brings."""

    subscription_id: int
    compression_type: int
    metrics: Bytes
    is_last: bool
    """Whether the client ends."""


class ClientTelemetry:
    """The clients of one broker.  Pure: time goes in; methods raise the ``KafkaError`` of a refusal."""

    def __init__(self, metrics_bytes_max: int) -> None:
        """``metrics_bytes_max``: ``telemetry.max.bytes``."""
        self.metrics_bytes_max = metrics_bytes_max
        self._settings: Mapping[str, Settings] = {}
        self._subscriptions: list[Subscription] = []
        self._version = 0
        self._clients: dict[bytes, Client] = {}
        """The one that was heard of last is at the end."""

    def subscribe(self, settings: Mapping[str, Settings]) -> None:
        """These are the subscriptions now, by name.  Clients learn of a change with their next request."""
        if settings != self._settings:
            self._settings = settings
            self._subscriptions = [Subscription.parse(settings[name]) for name in in_java_order(settings)]
            self._version += 1

    def hear_of(
        self, client_id: bytes, attributes: Mapping[str, str | None], now_ms: int
    ) -> tuple[Client, bool]:
        """The client that asks, and whether it is a new one."""
        client = self._clients.pop(client_id, None)
        is_new = client is None or client.expires_ms <= now_ms
        if client is None or is_new:
            given = {"client_instance_id": uuid_to_text(client_id), **attributes}
            client = Client(client_id, given, self._subscriptions, self._version)
        elif client.version < self._version:
            client = Client(client_id, client.attributes, self._subscriptions, self._version)
        client.expires_ms = now_ms + max(REMEMBERED_MS, client.interval_ms * 3)
        self._clients[client_id] = client
        if len(self._clients) > CLIENTS_MAX:
            del self._clients[next(iter(self._clients))]
        return client, is_new

    def forget(self, client_id: bytes) -> None:
        """Its connection is gone."""
        self._clients.pop(client_id, None)

    def ask(self, client: Client, now_ms: int) -> None:
        """A client asks what is wanted of it."""
        if not client.may_ask(now_ms) and client.last_error not in _HAS_TO_ASK_AGAIN:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        client.last_error = ErrorCode.NONE

    def deliver(self, client: Client, delivery: Delivery, now_ms: int) -> None:
        """A client brings metrics."""
        client.last_error = self._fault_in(client, delivery, now_ms)
        client.is_ending = delivery.is_last
        if client.last_error:
            raise KafkaError(client.last_error)

    def _fault_in(self, client: Client, delivery: Delivery, now_ms: int) -> ErrorCode:
        if client.is_ending:
            return ErrorCode.INVALID_REQUEST
        if not client.may_deliver(now_ms) and not delivery.is_last:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if delivery.subscription_id != client.subscription_id:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if delivery.compression_type not in _COMPRESSION_TYPES:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if len(delivery.metrics) > self.metrics_bytes_max:
            return ErrorCode.TELEMETRY_TOO_LARGE
        return ErrorCode.NONE if self._can_be_read(delivery) else ErrorCode.INVALID_RECORD

    def _can_be_read(self, delivery: Delivery) -> bool:
        """Kafka unpacks metrics even if nobody receives them, into as many bytes as may be delivered."""
        if not delivery.metrics:
            return True
        try:
            decompress(Compression(delivery.compression_type), delivery.metrics, self.metrics_bytes_max)
        except CorruptRecords:
            return False
        return True


_HAS_TO_ASK_AGAIN: Final = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
"""Whoever has been told this may do so at once."""

_COMPRESSION_TYPES: Final = frozenset(Compression)


def _subscription_id(client_id: bytes, metrics: list[str], interval_ms: int) -> int:
    """Tells what is wanted of this client from what was wanted of it before."""
    told = f"[{', '.join(metrics)}]{interval_ms}".encode()
    unsigned = crc32c(told) ^ uuid_hash(client_id)
    return unsigned - (1 << 32) if unsigned >> 31 else unsigned
