"""A request that ends too early closes the connection: of every API, in every version."""

from compat.oracle.apis import COVERED, api_of
from compat.oracle.conversation import Hold, conversation
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey


def truncations_of(key: ApiKey) -> Hold:
    """A conversation named after the API."""

    def hold(talk: Talk) -> None:
        body = api_of(key).request().encode(talk.version_of(key))
        if body:
            talk.ask_bytes("without the last byte", key, body[:-1])

    hold.__name__ = key.name.lower()
    return hold


for _key in COVERED:
    conversation(_key)(truncations_of(_key))
