"""A conversation as data: which requests, in which versions; and the list of them all."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from compat.oracle.apis import api_of
from protocol.api_keys import ApiKey
from protocol.schema import version_range

if TYPE_CHECKING:
    from compat.oracle.talk import Talk

Hold = Callable[["Talk"], None]


class Conversation(NamedTuple):
    """Requests that belong together, and the versions they are made in.

    It is held once per round.  In round 5 each of the APIs in ``over`` is asked in version 5, or in the
    nearest that it has; every other API is asked in its last version.
    """

    subject: str
    """The file it stands in."""
    name: str
    over: tuple[ApiKey, ...]
    rounds: range
    alone: bool
    """Whether nothing else may happen on the broker meanwhile."""
    hold: Hold

    def version_of(self, key: ApiKey, turn: int) -> int:
        """The version in which round ``turn`` asks that API."""
        versions = api_of(key).versions
        if key not in self.over:
            return versions[-1]
        return min(max(turn, versions[0]), versions[-1])


CONVERSATIONS: Final[list[Conversation]] = []
"""All of them, once ``compat.oracle.conversations`` is imported."""


def conversation(*over: ApiKey, rounds: str = "0+", alone: bool = False) -> Callable[[Hold], Hold]:
    """Hold the decorated function's conversation over every version of the given APIs.

    ``rounds`` limits the versions; ``alone`` keeps all other conversations away meanwhile.
    """
    covered = [api_of(key).versions for key in over]
    wanted = version_range(rounds)
    first = max(min(versions[0] for versions in covered), wanted[0])
    last = min(max(versions[-1] for versions in covered), wanted[-1])

    def register(hold: Hold) -> Hold:
        subject = hold.__module__.rpartition(".")[2]
        name = hold.__name__.replace("_", " ")
        CONVERSATIONS.append(Conversation(subject, name, over, range(first, last + 1), alone, hold))
        return hold

    return register
