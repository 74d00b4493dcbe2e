"""What the APIs of security answer where there is none: no authorizer, nobody authenticated."""

from typing import Final

from broker.errors import CloseConnection

NO_AUTHORIZER: Final = "No Authorizer is configured."

UNKNOWN_WORD: Final = 0
"""What older clients make of a resource type, pattern type, operation or permission unknown to them."""

PRINCIPAL_TYPE, ANONYMOUS = "User", "ANONYMOUS"
"""Who everybody is."""

NO_TIME_MS: Final = -1
"""The times of a token that there is not."""


def check_words(api: str, *words: int) -> None:
    """Raises ``CloseConnection`` for a word that means "unknown": Kafka does not read such a request."""
    if UNKNOWN_WORD in words:
        raise CloseConnection(f"a {api} request has elements of an unknown type")
