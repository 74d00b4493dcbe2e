"""What clients may use: quotas of users, of client ids, of both and of addresses."""

from collections.abc import Mapping

from compat.oracle.conversation import conversation
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

BROKER = 4

USER, CLIENT, IP = "user", "client-id", "ip"
PRODUCE, FETCH = "producer_byte_rate", "consumer_byte_rate"
REQUEST, MUTATION = "request_percentage", "controller_mutation_rate"
CONNECTION = "connection_creation_rate"
EXACT, DEFAULT, ANY = 0, 1, 2

Entity = Mapping[str, str | None]
Ops = Mapping[str, float | None]
Part = tuple[str, int, str | None]


def entry(entity: Entity, ops: Ops) -> AlterClientQuotasRequestEntryData:
    """None removes a quota."""
    return AlterClientQuotasRequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[
            OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in ops.items()
        ],
    )


def alter(
    *entries: AlterClientQuotasRequestEntryData, validate_only: bool = False
) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)


def give(entity: Entity, ops: Ops) -> AlterClientQuotasRequest:
    return alter(entry(entity, ops))


def describe(*parts: Part, strict: bool = False) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in parts
        ],
        strict=strict,
    )


def caught_up(talk: Talk) -> None:
    """Wait until the broker has seen what the controller has altered: it sees it in order."""
    marker = {USER: talk.name(f"m{len(talk.steps)}")}
    seen = describe((USER, EXACT, marker[USER]))
    talk.quietly(give(marker, {PRODUCE: 1e12}))
    talk.until(seen, lambda answer: bool(answer.entries))
    talk.quietly(give(marker, {PRODUCE: None}))
    talk.until(seen, lambda answer: not answer.entries)


def look(talk: Talk, label: str, request: DescribeClientQuotasRequest) -> None:
    caught_up(talk)
    talk.ask(label, request)


def forget(talk: Talk, *entities: Entity) -> None:
    keys = (PRODUCE, FETCH, REQUEST, MUTATION)
    for number, entity in enumerate(entities):
        ops: Ops = dict.fromkeys((CONNECTION,) if IP in entity else keys)
        talk.ask(f"forgetting {number}", give(entity, ops))


@conversation(ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.DESCRIBE_CLIENT_QUOTAS)
def giving_and_taking(talk: Talk) -> None:
    user, client = talk.name("u"), talk.name("c")
    who = describe((USER, EXACT, user))
    talk.ask("before", who)
    talk.ask("one", give({USER: user}, {PRODUCE: 1e12}))
    look(talk, "there", who)
    talk.ask("all four", give({USER: user}, {PRODUCE: 1e12, FETCH: 2e12, REQUEST: 5e5, MUTATION: 1e6}))
    look(talk, "all there", who)
    talk.ask("the same again", give({USER: user}, {PRODUCE: 1e12, FETCH: 2e12}))
    talk.ask("one altered, one taken", give({USER: user}, {PRODUCE: 1e11, FETCH: None}))
    look(talk, "less there", who)
    talk.ask("taking what is not there", give({USER: user}, {FETCH: None}))
    talk.ask("taking what there cannot be", give({USER: user}, {"x": None, CONNECTION: None}))
    talk.ask("taking from nobody", give({USER: talk.name("nobody")}, {FETCH: None}))
    talk.ask("nothing", give({USER: user}, {}))
    talk.ask("nothing to nobody", alter())
    talk.ask("only to see", alter(entry({USER: user}, {MUTATION: 9e9}), validate_only=True))
    talk.ask("only to see what is wrong", alter(entry({USER: user}, {MUTATION: -9}), validate_only=True))
    look(talk, "as it was", who)
    both = {USER: user, CLIENT: client}
    talk.ask("both", give(both, {REQUEST: 1e6}))
    talk.ask(
        "both, and the client", alter(entry(both, {MUTATION: 1e9}), entry({CLIENT: client}, {FETCH: 1e13}))
    )
    look(talk, "of the user", who)
    talk.ask("of the client", describe((CLIENT, EXACT, client)))
    forget(talk, {USER: user}, both, {CLIENT: client})
    look(talk, "in the end", describe((USER, EXACT, user), (CLIENT, EXACT, client)))


@conversation(ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.DESCRIBE_CLIENT_QUOTAS)
def refusals(talk: Talk) -> None:
    user, other = talk.name("u"), talk.name("o")
    one = {USER: user}
    for label, value in (
        ("nothing", 0.0),
        ("a little less than nothing", -0.0),
        ("less than nothing", -1.0),
        ("a part of a byte", 0.5),
        ("a byte and a half", 1.5),
        ("almost a whole number of bytes", 1e12 + 2**-11),
        ("much more than a whole number", 2.0**63),
        ("too much", 2.0**64),
        ("infinitely much", float("inf")),
        ("infinitely little", float("-inf")),
    ):
        talk.ask(f"{label} produced", give(one, {PRODUCE: value}))
        talk.ask(f"{label} requested", give(one, {REQUEST: value}))
    look(talk, "what is left", describe((USER, EXACT, user)))
    talk.ask("no number produced", give({USER: talk.name("n")}, {PRODUCE: float("nan")}))
    talk.ask("an unknown key", give(one, {"consumer_rate": 1e12}))
    talk.ask("no key", give(one, {"": 1e12}))
    talk.ask("that of an address", give(one, {CONNECTION: 1e6}))
    talk.ask("good and bad keys", give(one, {FETCH: 1e12, "x": 1.0, MUTATION: -1.0}))
    talk.ask("several bad keys", give(one, {"a": 1.0, "b": 1.0, "c": 1.0, REQUEST: -1.0, FETCH: 1.5}))
    talk.ask("an unknown type", give({"team": user}, {PRODUCE: 1e12}))
    talk.ask("a known and an unknown type", give({USER: user, "team": user}, {PRODUCE: 1e12}))
    talk.ask("a type in capitals", give({"User": user}, {PRODUCE: 1e12}))
    talk.ask("no type", give({"": user}, {PRODUCE: 1e12}))
    talk.ask("nobody", give({}, {PRODUCE: 1e12}))
    talk.ask("a user without a name", give({USER: ""}, {PRODUCE: 1e12}))
    talk.ask("a client without a name", give({USER: user, CLIENT: ""}, {PRODUCE: 1e12}))
    talk.ask("an address without a name", give({IP: ""}, {CONNECTION: 1e6}))
    talk.ask("a user at an address", give({USER: user, IP: "192.0.2.1"}, {CONNECTION: 1e6}))
    talk.ask("a client at an address", give({CLIENT: user, IP: "192.0.2.1"}, {PRODUCE: 1e12}))
    talk.ask("everybody at every address", give({USER: None, CLIENT: None, IP: None}, {CONNECTION: 1e6}))
    twice = entry(one, {PRODUCE: 1e12})
    twice.ops += twice.ops
    talk.ask("a key twice", alter(twice))
    talk.ask(
        "a user twice", alter(entry({USER: other}, {PRODUCE: 1e12}), entry({USER: other}, {FETCH: 1e12}))
    )
    look(talk, "what the first said", describe((USER, EXACT, other)))
    talk.ask("a client and a user twice", alter(*[entry({CLIENT: other, USER: None}, {"x": 1.0})] * 2))
    named_twice = entry(one, {PRODUCE: 1e12})
    named_twice.entity.append(EntityData(entity_type=USER, entity_name=other))
    talk.ask("a type twice", alter(named_twice))
    talk.ask("some good, some bad", alter(entry({USER: other}, {PRODUCE: 2e12}), entry(one, {PRODUCE: -1.0})))
    look(talk, "what is left of both", describe((USER, ANY, None), (CLIENT, EXACT, other)))
    forget(talk, one, {USER: other}, {USER: talk.name("n")})


@conversation(ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.DESCRIBE_CLIENT_QUOTAS, alone=True)
def addresses(talk: Talk) -> None:
    first, second = "192.0.2.7", "2001:db8::7"
    talk.ask("of one", give({IP: first}, {CONNECTION: 1e6}))
    talk.ask("of another", give({IP: second}, {CONNECTION: 2e6}))
    talk.ask("of everybody else", give({IP: None}, {CONNECTION: 3e6}))
    talk.ask("of a host", give({IP: "localhost"}, {CONNECTION: 4e6}))
    talk.ask("of a host that is not there", give({IP: "no.such.host.invalid"}, {CONNECTION: 1e6}))
    talk.ask("of nothing like it", give({IP: "so nicht!"}, {CONNECTION: 1e6}))
    talk.ask("of a part of an address", give({IP: "192.0.2"}, {CONNECTION: 1e6}))
    talk.ask("of too much of an address", give({IP: "192.0.2.7.1"}, {CONNECTION: 1e6}))
    talk.ask("more than there can be", give({IP: first}, {CONNECTION: 2.0**31}))
    talk.ask("as many as there can be", give({IP: first}, {CONNECTION: 2.0**31 - 1}))
    talk.ask("one and a half", give({IP: first}, {CONNECTION: 1.5}))
    talk.ask("none", give({IP: first}, {CONNECTION: 0.0}))
    talk.ask("what clients have", give({IP: first}, {PRODUCE: 1e12}))
    look(talk, "all", describe((IP, ANY, None)))
    talk.ask("that of one", describe((IP, EXACT, first)))
    talk.ask("that of everybody else", describe((IP, DEFAULT, None), strict=True))
    talk.ask("that of nobody", describe((IP, EXACT, "192.0.2.8")))
    talk.ask("with a user", describe((IP, EXACT, first), (USER, ANY, None)))
    talk.ask("with a client", describe((IP, ANY, None), (CLIENT, DEFAULT, None)))
    forget(talk, {IP: first}, {IP: second}, {IP: None}, {IP: "localhost"}, {IP: "192.0.2"})
    look(talk, "in the end", describe((IP, ANY, None)))


@conversation(ApiKey.DESCRIBE_CLIENT_QUOTAS, alone=True)
def filters(talk: Talk) -> None:
    user, client, other = talk.name("u"), talk.name("c"), talk.name("o")
    entities: list[Entity] = [
        {USER: user},
        {USER: other},
        {USER: None},
        {CLIENT: client},
        {CLIENT: None},
        {USER: user, CLIENT: client},
        {USER: user, CLIENT: None},
        {USER: None, CLIENT: client},
        {USER: None, CLIENT: None},
        {USER: other, CLIENT: other},
    ]
    given = [entry(entity, {PRODUCE: 1e12 + number}) for number, entity in enumerate(entities)]
    talk.ask("given", alter(*given, entry({IP: "192.0.2.7"}, {CONNECTION: 1e6})))
    caught_up(talk)
    of_user: list[Part] = [(USER, EXACT, user), (USER, DEFAULT, None), (USER, ANY, None)]
    of_client: list[Part] = [(CLIENT, EXACT, client), (CLIENT, DEFAULT, None), (CLIENT, ANY, None)]
    for strict in (False, True):
        word = "strictly " if strict else ""
        talk.ask(f"{word}all", describe(strict=strict))
        for number, part in enumerate((*of_user, *of_client)):
            talk.ask(f"{word}filter {number}", describe(part, strict=strict))
        for first, one in enumerate(of_user):
            for second, two in enumerate(of_client):
                talk.ask(f"{word}filters {first} and {second}", describe(two, one, strict=strict))
        talk.ask(f"{word}somebody unknown", describe((USER, EXACT, talk.name("x")), strict=strict))
        talk.ask(f"{word}an address", describe((IP, ANY, None), strict=strict))
    forget(talk, *entities, {IP: "192.0.2.7"})
    look(talk, "nothing is left", describe())


@conversation(ApiKey.INCREMENTAL_ALTER_CONFIGS, rounds="1", alone=True)
def limits_of_connections(talk: Talk) -> None:
    """Of the broker, and of a listener, whose name is in small letters then."""
    for resource in ("", "1"):
        for name, values in (
            ("max.connections", ("0", "-1", "5")),
            ("max.connection.creation.rate", ("0", "5")),
            ("listener.name.plaintext.max.connections", ("0", "-2", "many", "5")),
            ("listener.name.plaintext.max.connection.creation.rate", ("0", "5")),
            ("listener.name.PLAINTEXT.max.connections", ("0",)),
            ("listener.name.other.max.connections", ("0",)),
            ("listener.name.plaintext.max.connections.per.ip", ("5",)),
            ("max.connections.per.ip", ("0", "5")),
            ("max.connections.per.ip.overrides", ("127.0.0.2:0", "so nicht!:5")),
        ):
            for value in values:
                config = AlterableConfig(name=name, value=value)
                of_broker = AlterConfigsResource(
                    resource_type=BROKER, resource_name=resource, configs=[config]
                )
                request = IncrementalAlterConfigsRequest(resources=[of_broker], validate_only=True)
                talk.ask(f"{name} {value} of {resource or 'all'}", request)


@conversation(ApiKey.DESCRIBE_CLIENT_QUOTAS)
def bad_filters(talk: Talk) -> None:
    talk.ask("no type", describe(("", EXACT, "u")))
    talk.ask("an unknown type", describe(("team", EXACT, "u")))
    talk.ask("an unknown type of match", describe((USER, 3, "u")))
    talk.ask("a negative type of match", describe((USER, -1, None)))
    talk.ask("a name that is none", describe((USER, EXACT, None)))
    talk.ask("an empty name", describe((USER, EXACT, "")))
    talk.ask("a default with a name", describe((CLIENT, DEFAULT, "c")))
    talk.ask("anybody with a name", describe((CLIENT, ANY, "c")))
    talk.ask("a type twice", describe((USER, EXACT, "u"), (USER, ANY, None)))
    talk.ask("a type twice as the same", describe((USER, ANY, None), (USER, ANY, None)))
    talk.ask("the first mistake", describe((USER, EXACT, None), ("", EXACT, "u")))
    talk.ask("a mistake behind a good one", describe((CLIENT, DEFAULT, None), ("team", ANY, "u")))
