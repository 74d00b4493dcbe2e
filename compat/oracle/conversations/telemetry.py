"""GetTelemetrySubscriptions and PushTelemetry: metrics that clients deliver, where nobody receives them.

Whoever asks is remembered, so that clients have ids of their own in each conversation.  What other
conversations have subscribed to, in order to wait for it, is taken back first.
"""

from typing import Any

from compat.oracle.conversation import conversation
from compat.oracle.conversations.configs import DELETE, METRICS, SET, change
from compat.oracle.talk import NAMELESS, Talk
from protocol.api_keys import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from protocol.messages.list_config_resources import ListConfigResourcesRequest
from protocol.messages.push_telemetry import PushTelemetryRequest
from protocol.uuids import ONE_UUID, ZERO_UUID

BOTH = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)

LONG_MS = 300_000
"""Between two deliveries of a client of which nothing is wanted."""

SHORT_MS = 10_000


def ask(client: bytes) -> GetTelemetrySubscriptionsRequest:
    return GetTelemetrySubscriptionsRequest(client_instance_id=client)


def push(
    client: bytes, subscription: int, metrics: bytes = b"", *, codec: int = 0, last: bool = False
) -> PushTelemetryRequest:
    return PushTelemetryRequest(
        client_instance_id=client,
        subscription_id=subscription,
        terminating=last,
        compression_type=codec,
        metrics=metrics,
    )


def subscribe(talk: Talk, name: str, **settings: str) -> str:
    """Want something of clients; settings are given as ``interval_ms``.  Returns the subscription's name."""
    full_name = talk.name(name)
    changes = [(key.replace("_", "."), SET, value) for key, value in settings.items()]
    (changed,) = talk.quietly(change((METRICS, full_name, changes))).responses
    assert not changed.error_code, changed
    return full_name


def take_back(talk: Talk) -> None:
    """Let nothing be wanted of anybody."""
    request = ListConfigResourcesRequest(resource_types=[METRICS])
    names = [found.resource_name for found in talk.quietly(request).config_resources]
    settings = [(setting, DELETE, None) for setting in ("interval.ms", "metrics", "match")]
    for changed in talk.quietly(change(*((METRICS, name, settings) for name in names))).responses:
        assert not changed.error_code, changed
    until(talk, LONG_MS)


def until(talk: Talk, interval_ms: int) -> None:
    """Wait until that is what clients are told who ask for the first time."""
    talk.until(ask(ZERO_UUID), lambda answer: answer.push_interval_ms == interval_ms)


@conversation(*BOTH, alone=True)
def nothing_is_wanted(talk: Talk) -> None:
    take_back(talk)
    one, two, three, four, five = (bytes([0x20 + n, *range(15)]) for n in range(5))
    told: Any = talk.ask("ask", ask(one))
    talk.ask("ask again", ask(one))
    talk.ask("deliver", push(one, told.subscription_id))
    talk.ask("deliver again", push(one, told.subscription_id))
    talk.ask("deliver for the last time", push(one, told.subscription_id, last=True))
    talk.ask("deliver after the last time", push(one, told.subscription_id))
    talk.ask("ask after the last time", ask(one))
    talk.ask("deliver without having asked", push(two, 1))
    told = talk.ask("ask after that", ask(two))
    talk.ask("deliver what cannot be read", push(two, told.subscription_id, b"\x00\x01\x02", codec=4))
    talk.ask("deliver nothing", push(three, 0))
    told = talk.ask("ask after nothing", ask(three))
    talk.ask("deliver in no codec", push(three, told.subscription_id, codec=5))
    talk.ask("ask after no codec", ask(three))
    talk.ask("deliver too soon", push(three, told.subscription_id, codec=-1))
    told = talk.ask("a fourth asks", ask(four))
    talk.ask("deliver too much", push(four, told.subscription_id, bytes((1 << 20) + 1)))
    talk.ask("ask after too much", ask(four))
    told = talk.ask("a fifth asks", ask(five))
    talk.ask("deliver as much as one may", push(five, told.subscription_id, bytes(1 << 20)))
    for name, client in (("zero", ZERO_UUID), ("one", ONE_UUID)):
        talk.ask(f"deliver as {name}", push(client, 0))
    talk.ask("ask as one", ask(ONE_UUID))


@conversation(*BOTH, alone=True)
def subscriptions(talk: Talk) -> None:
    take_back(talk)
    clients = (bytes([0x40 + n]) * 16 for n in range(64))
    subscribe(talk, "a", metrics="org.apache.kafka.producer.,x", interval_ms="30000", match="client_id=or.*")
    subscribe(talk, "b", metrics="x,y,org.apache.kafka.consumer.", match="client_id = no")
    subscribe(talk, "c", interval_ms="20000", match="client_software_name=soft,client_software_version=1[.]0")
    subscribe(talk, "d", metrics="z", match="client_source_address=127[.]0[.]0[.]1,client_id=nobody.*")
    subscribe(talk, "e", metrics="*", match="client_id=all")
    subscribe(talk, "f", metrics="never", match="client_id=oracl")
    subscribe(talk, "g", metrics="never", match="client_source_port=0")
    subscribe(talk, "h", metrics="own", match="client_instance_id=AAECAwQFBgcICQoLDA0ODw")
    subscribe(talk, "i", metrics="unknown", match="client_software_name=unknown")
    last = subscribe(talk, "j", interval_ms=str(LONG_MS - 1))
    until(talk, LONG_MS - 1)
    talk.ask("the first", ask(next(clients)))
    for who in ("no", "all", NAMELESS, "nobody else"):
        talk.ask(f"as {who}", ask(next(clients)), by=who)
    talk.ask("with its own id", ask(bytes(range(16))), by="third")
    hello = ApiVersionsRequest(client_software_name="soft", client_software_version="1.0")
    talk.ask("say what one is", hello, by="soft")
    talk.ask("as a certain software", ask(next(clients)), by="soft")
    one = next(clients)
    told: Any = talk.ask("before a change", ask(one))
    (changed,) = talk.quietly(change((METRICS, last, [("interval.ms", SET, str(SHORT_MS))]))).responses
    assert not changed.error_code, changed
    until(talk, SHORT_MS)
    talk.ask("deliver what was wanted before", push(one, told.subscription_id))
    told = talk.ask("ask what is wanted now", ask(one))
    talk.ask("deliver that", push(one, told.subscription_id))
    take_back(talk)
    talk.ask("nothing is wanted any more", ask(next(clients)))
