"""Which settings of a running broker may be altered, for whom, and Kafka's words for those that may not.

``alterable.json`` groups all settings by their outcomes; ``record`` asks anew, which alters nothing.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator

from broker.config.definitions import ConfigError, Definition, Scope, definitions
from protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.golden.configs.steps import APPEND, BROKER, SET, change

Ask = Callable[[IncrementalAlterConfigsRequest], tuple[int, str | None]]

A_LISTENER = "listener.name.plaintext."


def questions(known: Definition) -> Iterator[IncrementalAlterConfigsRequest]:
    """For this broker and for all, under the setting's own name and under a listener's."""
    text = another_value(known)
    for broker in ("1", ""):
        for name, operation in ((known.name, SET), (A_LISTENER + known.name, SET), (known.name, APPEND)):
            yield change((BROKER, broker, [(name, operation, text)]), validate_only=True)


def another_value(known: Definition) -> str:
    """A valid value that is not the default, if there is one without a class of Java's."""
    candidates = ["true", "false", "compact", "LogAppendTime", "gzip", "0.25", "5000000", "7", "x"]
    if isinstance(known.default, int):
        candidates[:0] = [str(min(known.default, 10**9) + 1), str(min(known.default, 10**9) - 1)]
    for text in candidates:
        try:
            if known.parse(text) != known.default:
                return text
        except ConfigError:
            continue
    return known.default_text or "x"


def asked_about_all(ask: Ask) -> dict[str, list[str]]:
    """What becomes of the questions about each setting: the settings by their outcomes, one a line."""
    found: dict[str, list[str]] = defaultdict(list)
    for known in definitions(Scope.BROKER):
        told = [ask(request) for request in questions(known)]
        lines = [f"{code} {message or ''}".replace(known.name, "{name}").rstrip() for code, message in told]
        found["\n".join(lines)].append(known.name)
    return dict(found)
