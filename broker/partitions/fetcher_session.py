"""The asking side of an incremental fetch session (KIP-227): what a follower's next request has to name."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Final, Generic, TypeVar

FULL_EPOCH: Final = 0
"""Session epoch of a request that names everything and wants a new session."""

NO_SESSION: Final = 0

_EPOCH_MAX: Final = 2**31 - 1

Key = TypeVar("Key", bound=Hashable)
Wish = TypeVar("Wish")


class FetcherSession(Generic[Key, Wish]):
    """What the leader knows of our wishes.  Pure: whoever asks says what came of it.

    ``told`` is what the leader will know, by partition, once it has the request that was planned last.
    """

    def __init__(self) -> None:
        self.id = NO_SESSION
        self.epoch = FULL_EPOCH
        """Of the next request."""
        self.told: dict[Key, Wish] = {}

    @property
    def is_full(self) -> bool:
        """Whether the next request has to name everything."""
        return self.epoch == FULL_EPOCH

    def plan(
        self, wishes: Mapping[Key, Wish], dropped: Iterable[Key] = ()
    ) -> tuple[dict[Key, Wish], list[Key]]:
        """What the next request names, and what it forgets.

        ``wishes`` are those that may have changed, or all of them if the session ``is_full``; ``dropped`` are
        partitions that are wanted no longer.
        """
        if self.is_full:
            self.told = dict(wishes)
            return self.told, []
        told = self.told
        changed = {key: wish for key, wish in wishes.items() if told.get(key) != wish}
        forgotten = [key for key in dropped if told.pop(key, None) is not None]
        told.update(changed)
        return changed, forgotten

    def note_answer(self, session_id: int) -> None:
        """The request was answered, by this session."""
        if self.epoch == FULL_EPOCH:
            self.id = session_id
            self.epoch = FULL_EPOCH if session_id == NO_SESSION else 1
        elif session_id == self.id:
            self.epoch = self.epoch + 1 if self.epoch < _EPOCH_MAX else 1
        else:
            self.start_anew()

    def start_anew(self) -> None:
        """The session is gone, or nobody knows what the leader knows: the next request begins another.

        It names the old one, which the leader then closes.
        """
        self.epoch = FULL_EPOCH
        self.told = {}

    def forget(self) -> None:
        """The leader does not know the session."""
        self.id = NO_SESSION
        self.start_anew()
