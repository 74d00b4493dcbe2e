"""Who has which quota: Kafka's rules for users, client ids, both of them, and defaults (KIP-55, KIP-257)."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from broker.metadata.image import QuotaEntity
from broker.quotas.keys import CLIENT_ID, USER

NOBODY: Final = ""
"""Stands for a part that an entity does not have: nobody has such a name."""

Entity = tuple[str | None, str | None]
"""User and client id; None is the default, ``NOBODY`` that the entity has no such part."""


class Holder(NamedTuple):
    """Who shares one quota: all clients of a user, all users of a client id, or one client of one user."""

    user: str
    client_id: str


class Limits:
    """The limits of one kind, which are those of every entity that has one.

    What a client uses counts for the most specific entity that has a limit, and for it alone.  As long as all
    limits are those of users, or of client ids, or of both, only these are looked at.
    """

    def __init__(self, limits: Iterable[tuple[QuotaEntity, float]]) -> None:
        self._limits: dict[Entity, float] = {}
        for entity, limit in limits:
            parts = dict(entity)
            self._limits[parts.get(USER, NOBODY), parts.get(CLIENT_ID, NOBODY)] = limit
        self._levels = {(user != NOBODY, client_id != NOBODY) for user, client_id in self._limits}

    def __bool__(self) -> bool:
        return bool(self._limits)

    def holder(self, user: str, client_id: str) -> Holder:
        """Whose quota a client uses."""
        if len(self._levels) == 1:
            ((has_user, has_client_id),) = self._levels
            return Holder(user if has_user else NOBODY, client_id if has_client_id else NOBODY)
        limits = self._limits
        if (user, client_id) in limits or (user, None) in limits:
            return Holder(user, client_id)
        if (user, NOBODY) in limits:
            return Holder(user, NOBODY)
        if (None, client_id) in limits or (None, None) in limits:
            return Holder(user, client_id)
        if (None, NOBODY) in limits:
            return Holder(user, NOBODY)
        return Holder(NOBODY, client_id)

    def limit(self, holder: Holder) -> float | None:
        """How much a holder may use; None if that is not limited."""
        user, client_id = holder
        candidates: tuple[Entity, ...] = ()
        if user and client_id:
            candidates = ((user, client_id), (user, None), (None, client_id), (None, None))
        elif user:
            candidates = ((user, NOBODY), (None, NOBODY))
        elif client_id:
            candidates = ((NOBODY, client_id), (NOBODY, None))
        for entity in candidates:
            if entity in self._limits:
                return self._limits[entity]
        return None
