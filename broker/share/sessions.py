"""Share sessions: what each member fetches, kept from request to request (KIP-932)."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError

INITIAL_EPOCH: Final = 0
"""Opens a session, in the place of one that the member may have."""
FINAL_EPOCH: Final = -1
"""Closes it."""
_EPOCH_MAX: Final = 2**31 - 1


class TopicPartition(NamedTuple):
    topic_id: bytes
    partition: int


class SessionKey(NamedTuple):
    group_id: str
    member_id: str


class Place(NamedTuple):
    """What a session knows of one of its partitions."""

    is_known: bool
    """Whether there was a topic of that id when the partition was added."""
    must_tell: bool
    """Whether the next answer must name it, even if there is nothing to tell."""


class ShareSession:
    """The partitions that a member fetches, in the order in which it is told of them."""

    __slots__ = ("connection", "epoch", "key", "partitions")

    def __init__(self, key: SessionKey, partitions: Mapping[TopicPartition, bool], connection: int) -> None:
        self.key = key
        self.epoch = next_epoch(INITIAL_EPOCH)
        """That of the next request."""
        self.partitions = {partition: Place(is_known, False) for partition, is_known in partitions.items()}
        self.connection = connection

    def update(self, added: Mapping[TopicPartition, bool], forgotten: Iterable[TopicPartition]) -> None:
        """``added`` partitions come with whether there is such a topic."""
        for partition, is_known in added.items():
            self.partitions.setdefault(partition, Place(is_known, True))
        for partition in forgotten:
            self.partitions.pop(partition, None)

    def would_tell(self, partition: TopicPartition, *, has_records: bool, has_error: bool) -> bool:
        """Whether an answer would be about this partition, if there was one."""
        place = self.partitions.get(partition)
        return has_records or has_error or (place is not None and place.must_tell)

    def must_tell(self, partition: TopicPartition, *, has_records: bool, has_error: bool) -> bool:
        """Whether an answer is about this partition; then the session goes on from there.

        Who got records goes to the end, so that each has its turn.
        """
        tell = self.would_tell(partition, has_records=has_records, has_error=has_error)
        place = self.partitions.get(partition)
        if place is not None:
            if has_records:
                del self.partitions[partition]
            self.partitions[partition] = place._replace(must_tell=has_error)
        return tell


def next_epoch(epoch: int) -> int:
    """The one after ``epoch``; 0 and -1 have other meanings."""
    return epoch + 1 if 0 <= epoch < _EPOCH_MAX else 1


class ShareSessions:
    """The sessions of all members at this broker, ``limit`` at most.

    A session ends with the connection that opened it, unless that has opened another one since.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._members: dict[str, int] = {}
        """How many sessions each group has."""
        self._opened_by: dict[int, ShareSession] = {}
        """The last session that each connection opened."""

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: SessionKey) -> ShareSession | None:
        return self._sessions.get(key)

    def has_members(self, group_id: str) -> bool:
        return self._members.get(group_id, 0) > 0

    def open(
        self, key: SessionKey, partitions: Mapping[TopicPartition, bool], connection: int
    ) -> ShareSession:
        """A new session, of partitions with whether there is such a topic.

        Raises SHARE_SESSION_LIMIT_REACHED.
        """
        self.close(key)
        if len(self._sessions) >= self._limit:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = self._sessions[key] = ShareSession(key, partitions, connection)
        self._members[key.group_id] = self._members.get(key.group_id, 0) + 1
        self._opened_by[connection] = session
        return session

    def find(self, key: SessionKey, epoch: int) -> ShareSession:
        """The session that a request goes on with.

        Raises SHARE_SESSION_NOT_FOUND and INVALID_SHARE_SESSION_EPOCH.
        """
        session = self._sessions.get(key)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch not in (session.epoch, FINAL_EPOCH):
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        return session

    def advance(self, session: ShareSession) -> None:
        """The session's request has been accepted."""
        session.epoch = next_epoch(session.epoch)

    def close(self, key: SessionKey) -> ShareSession | None:
        """End the session; None if there is none."""
        session = self._sessions.pop(key, None)
        if session is not None:
            self._members[key.group_id] -= 1
        return session

    def connection_closed(self, connection: int) -> tuple[SessionKey, bool] | None:
        """A connection is gone: the session that it opened, and whether that still lasts.

        The session stays, so that its partitions can be looked up: ``close`` ends it.
        """
        session = self._opened_by.pop(connection, None)
        if session is None:
            return None
        return session.key, self._sessions.get(session.key) is session

    def forget_group(self, group_id: str) -> None:
        """The group has no session any more."""
        self._members.pop(group_id, None)
