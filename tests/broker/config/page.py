"""SETTINGS.md, printed from the tables: ``python -m tests.broker.config.page`` writes it anew."""

from collections.abc import Iterator
from pathlib import Path

from broker.config.alterations import FIXED
from broker.config.definitions import OTTLA_DEFAULTS, Definition, Scope, definitions
from broker.config.documentation import documentation
from broker.config.reasons import REASONS
from broker.logs import LOGGERS

PAGE = Path(__file__).parents[3] / "SETTINGS.md"

HEADINGS = {
    Scope.BROKER: "Settings of a broker",
    Scope.TOPIC: "Settings of a topic",
    Scope.GROUP: "Settings of a group",
    Scope.CLIENT_METRICS: "Settings of a client metrics subscription",
    Scope.QUOTA: "Quotas",
}

INTRODUCTION = """\
# Settings

Every setting of Apache Kafka 4.4.0 is known, checked, described and kept as there. Most act as there, and a
test shows it; those that do not are named with the reason. (Printed by `python -m tests.broker.config.page`.)

How a broker's setting can be changed: *at start* only; for *this broker* while it runs; or for
*all* brokers at once as well. Settings of topics, groups and the others can be changed at any time.
`kafka-configs --describe --all` shows the values of a running broker, except a few that
Kafka does not show either.

A default in bold is not Kafka's. Some others are what Kafka shows, but mean something else while nobody has
set them: [README.md](README.md#where-it-differs-from-kafkas-defaults) has the list.
"""

ABOUT_QUOTAS = """\

Set with `kafka-configs --entity-type` `users`, `clients` or both together; `connection_creation_rate` with
`--entity-type ips`.
"""

ABOUT_LOGGERS = """\
Their levels (TRACE, DEBUG, INFO, WARN, ERROR, FATAL) are changed with `kafka-configs --entity-type
broker-loggers`, and are those of the process: a restart begins with INFO, or with what
`KAFKA_LOG4J_ROOT_LOGLEVEL=DEBUG` and `KAFKA_LOG4J_LOGGERS=kafka.server=DEBUG,...` say in the environment. A
logger without a level of its own has that of the nearest one above it. `kafka.request.logger` begins with
WARN, and writes a line for each request at DEBUG. There are\
"""

CHANGED = {"read-only": "at start", "per-broker": "this broker", "cluster-wide": "all"}


def page() -> str:
    """The whole page."""
    return INTRODUCTION + "".join(line for scope in Scope for line in section(scope)) + loggers()


def loggers() -> str:
    names = ", ".join(f"`{name}`" for name in LOGGERS)
    return f"\n## Loggers of a broker\n\n{ABOUT_LOGGERS}: {names}.\n"


def section(scope: Scope) -> Iterator[str]:
    """What is said of one kind of settings."""
    known = definitions(scope)
    acting = [one for one in known if one.is_heeded]
    yield f"\n## {HEADINGS[scope]}\n"
    if scope is Scope.QUOTA:
        yield ABOUT_QUOTAS
    if acting:
        is_broker = scope is Scope.BROKER
        yield "\n| setting | default | " + ("changed | " if is_broker else "") + "meaning |\n"
        yield "|---|---|" + ("---|" if is_broker else "") + "---|\n"
        for one in acting:
            yield f"| `{one.name}` | {default(one)} | "
            yield f"{changed(one)} | " if is_broker else ""
            yield f"{meaning(one)} |\n"
    reasons = sorted({one.reason for one in known if one.reason is not None})
    if reasons:
        yield f"\n### {'Without effect' if acting else 'All without effect'}\n"
    for reason in reasons:
        names = [f"`{one.name}`" for one in known if one.reason == reason]
        yield f"\n{REASONS[reason][0].upper()}{REASONS[reason][1:]}: {', '.join(names)}.\n"


def default(one: Definition) -> str:
    """The default; in bold where it is not Kafka's."""
    text = "not set" if one.default_text is None else f"`{one.default_text}`" if one.default_text else "empty"
    return f"**{text}**" if one.scope is Scope.BROKER and one.name in OTTLA_DEFAULTS else text


def changed(one: Definition) -> str:
    """How it can be changed here, and what Kafka can do in addition."""
    said = CHANGED[one.update.value]
    return f"at start (Kafka: {said})" if one.name in FIXED else said


def meaning(one: Definition) -> str:
    return (documentation(one.scope, one.name) or "").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
