"""Replicas that are still to be made, and who waits for them."""

from collections.abc import Callable, Collection
from itertools import islice
from typing import NamedTuple

import trio

from broker.network.waiting import NotYet, Waiting
from storage.checkpoints import Replica
from storage.config import LogConfig


class Missing(NamedTuple):
    """A replica that this broker has been given and that is on no disk yet."""

    topic_id: bytes
    config: LogConfig
    assigned: bytes
    """The directory in which the cluster expects it."""


class MissingReplicas(dict[Replica, Missing]):
    """Those that somebody waits for are made first, and then those of the topic that came last, in order.

    Who makes a topic uses it at once, and its leaders elsewhere wait for the replicas here; thousands that
    came before it may never be used.

    A thread may take out what it has made.  All else happens on the loop.
    """

    def __init__(self) -> None:
        super().__init__()
        self._awaited: dict[Replica, list[Callable[[], None]]] = {}
        """Whom to tell when one is made, cannot be made, or is wanted no longer."""
        self._urgent: dict[Replica, None] = {}
        """Those of them that nobody has taken since, in this order."""
        self._topics: dict[str, dict[Replica, None]] = {}
        """By topic, the latest last; some may have been made or be wanted no longer."""
        self._has_some = trio.Event()

    def note(self, replica: Replica, missing: Missing) -> None:
        """Let it be made in the background."""
        self[replica] = missing
        self._topics.setdefault(replica[0], {})[replica] = None
        self._has_some.set()

    def require_made(self, replicas: Collection[Replica]) -> None:
        """Raise ``NotYet`` until each of these is ``settled``; not if there is none.  All must be missing."""
        if not replicas:
            return
        waiting: Waiting[None] = Waiting()
        unmade = len(replicas)

        def made() -> None:
            nonlocal unmade
            unmade -= 1
            if not unmade:
                waiting.answer(None)

        for replica in replicas:
            self._awaited.setdefault(replica, []).append(made)
            self._urgent[replica] = None
        self._has_some.set()
        raise NotYet(waiting)

    async def wait_for_some(self) -> None:
        """Return when there may be replicas to ``take``."""
        await self._has_some.wait()

    def take(self, count: int) -> list[Replica]:
        """Up to ``count`` replicas that are to be made now; no other call names them unless somebody asks.

        Some that somebody has asked for may have been made, or taken, or deleted already.
        """
        taken = list(islice(self._urgent, count))
        for replica in taken:
            del self._urgent[replica]
            self._topics.get(replica[0], {}).pop(replica, None)
        while self._topics and len(taken) < count:
            name = next(reversed(self._topics))
            replicas = self._topics[name]
            for replica in list(islice(replicas, count - len(taken))):
                del replicas[replica]
                if replica in self and replica not in taken:
                    taken.append(replica)
            if not replicas:
                del self._topics[name]
        if not taken and self._has_some.is_set():  # else somebody may be waiting for this one
            self._has_some = trio.Event()
        return taken

    def settled(self, replica: Replica) -> None:
        """It was made, cannot be made, or is wanted no longer: go on with what waits for it."""
        for made in self._awaited.pop(replica, ()):
            made()
