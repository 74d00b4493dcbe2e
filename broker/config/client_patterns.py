"""Regular expressions by which subscriptions of client metrics tell clients apart (KIP-714)."""

from typing import Protocol


class ClientPattern(Protocol):
    """What values of one attribute are meant."""

    def fullmatch(self, text: str, /) -> object | None: ...


def client_pattern(text: str) -> ClientPattern | None:
    """None if it is no regular expression, or one that could take for ever.

    Kafka has Java's, which try one way after the other: with a few letters for its name a client could keep
    the broker busy for years.  RE2's take as long as the text is; they cannot look around or back.
    """
    import re2  # few brokers are told of such a subscription

    options = re2.Options()
    options.log_errors = False  # it would write to standard error by itself
    try:
        pattern: ClientPattern = re2.compile(text, options)
    except (re2.error, UnicodeEncodeError):
        return None
    return pattern
