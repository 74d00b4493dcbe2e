"""Incremental fetch sessions (KIP-227): what each consumer asked for, and what it was told last.

A consumer of many partitions names them once; its later requests carry changes only, and answers
leave out what has not changed.  Pure bookkeeping: time and session ids are handed in.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError

if TYPE_CHECKING:
    from broker.partitions.replica import Replica
    from protocol.messages.fetch import FetchPartition, FetchRequest

INITIAL_EPOCH = 0
"""Session epoch of a full request that wants a session."""

FINAL_EPOCH = -1
"""Session epoch of a full request that wants none, and closes the session it names."""

EPOCH_MAX = 2**31 - 1

SESSION_IDS_OF_A_CACHE = EPOCH_MAX // 8
SESSION_IDS = range(1 - SESSION_IDS_OF_A_CACHE, 8 * SESSION_IDS_OF_A_CACHE)
"""What may stand in a request.  Kafka has eight caches, and fails where an id would belong to another one."""

NO_REPLICA = -1
"""Stands for no broker's id."""

NO_SESSION = 0
"""Session id of answers outside any session."""

EVICTION_AGE_MS = 120_000
"""A session unused for longer may go when a slot is needed, and one older than this may give way to a
larger one.  Kafka has no setting for it either."""

TOPIC_IDS_VERSION = 13  # KIP-516: from here on topics are named by id

PartitionKey = tuple[str | bytes, int]
"""Topic name or topic id, and partition number."""


class WantedPartition:
    """One partition as a consumer asked for it, and what its session's last answer said about it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "key",
        "last_fetched_epoch",
        "last_reading",
        "last_replica",
        "log_start",
        "max_bytes",
        "told_high_watermark",
        "told_log_start",
        "topic_name",
    )

    def __init__(self, key: PartitionKey, request: "FetchPartition") -> None:
        self.key = key
        self.told_high_watermark = -1
        self.told_log_start = -1
        self.topic_name: str | None = None
        """What the topic was called when it was read last."""
        self.update(request)

    def __repr__(self) -> str:
        topic, partition = self.key
        return f"<{topic if isinstance(topic, str) else topic.hex()}-{partition} from {self.fetch_offset}>"

    def update(self, request: "FetchPartition") -> None:
        """Take over what a later request says."""
        self.fetch_offset = request.fetch_offset
        self.max_bytes = request.partition_max_bytes
        self.current_leader_epoch = request.current_leader_epoch
        self.last_fetched_epoch = request.last_fetched_epoch
        self.last_reading: Reading | None = None
        """What came of it last, if that was nothing at all."""
        self.last_replica: Replica | None = None
        """Who was read then."""
        self.log_start = request.log_start_offset

    def would_tell(self, news: "Reading") -> bool:
        """Whether an incremental answer would have to mention ``news``, if there was one."""
        return (
            news.records_size_bytes > 0
            or news.diverging is not None
            or news.preferred_replica != NO_REPLICA
            or self.told_high_watermark != news.high_watermark
            or self.told_log_start != news.log_start
            or news.error_code != 0
        )

    def must_tell(self, news: "Reading") -> bool:
        """Whether an incremental answer has to mention ``news``; remembers what it then says."""
        tell = (
            news.records_size_bytes > 0 or news.diverging is not None or news.preferred_replica != NO_REPLICA
        )
        if self.told_high_watermark != news.high_watermark:
            self.told_high_watermark = news.high_watermark
            tell = True
        if self.told_log_start != news.log_start:
            self.told_log_start = news.log_start
            tell = True
        if news.error_code or news.diverging is not None:
            # So that it is mentioned again: it is not told with an error, nor heeded by who has diverged.
            self.told_high_watermark = -1
            tell = True
        return tell


class Reading:
    """What came of one wanted partition: offsets and records, or an error.

    ``records`` is a range of a file or ``b""``.  ``diverging`` is the epoch and end offset up to which the
    leader's log agrees with the reader's, when that is not as far as the reader believes.
    """

    __slots__ = (
        "aborted",
        "diverging",
        "error_code",
        "high_watermark",
        "last_stable",
        "log_start",
        "preferred_replica",
        "records",
        "records_size_bytes",
        "wanted",
    )

    def __init__(
        self,
        wanted: WantedPartition,
        error_code: int = 0,
        high_watermark: int = -1,
        last_stable: int = -1,
        log_start: int = -1,
    ) -> None:
        self.wanted = wanted
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable = last_stable
        self.log_start = log_start
        self.records: Any = b""
        self.records_size_bytes = 0
        self.aborted: list[tuple[int, int]] | None = None
        """Producer id and first offset of the aborted transactions among the records; None if not asked."""
        self.diverging: tuple[int, int] | None = None
        self.preferred_replica = NO_REPLICA
        """The broker from which this consumer had better read (KIP-392); then nothing was read here."""

    def __repr__(self) -> str:
        return f"<Reading {self.wanted} error {self.error_code}, {self.records_size_bytes} bytes>"


class FetchSession:
    """The partitions of one consumer, in the order in which they are read next."""

    __slots__ = ("created_ms", "epoch", "id", "last_used_ms", "partitions", "privileged", "uses_topic_ids")

    def __init__(
        self,
        session_id: int,
        partitions: dict[PartitionKey, WantedPartition],
        *,
        uses_topic_ids: bool,
        privileged: bool,
        now_ms: int,
    ) -> None:
        self.id = session_id
        self.partitions = partitions
        self.uses_topic_ids = uses_topic_ids
        self.privileged = privileged
        """It belongs to a follower, which no consumer may displace."""
        self.epoch = 1
        """What the next request has to say."""
        self.created_ms = now_ms
        self.last_used_ms = now_ms

    def __repr__(self) -> str:
        return f"<FetchSession {self.id} epoch {self.epoch}, {len(self.partitions)} partitions>"

    def update(self, request: "FetchRequest") -> None:
        """Add and change what the request names, drop what it forgets."""
        partitions = self.partitions
        for topic in request.topics:
            name = topic.topic_id if self.uses_topic_ids else topic.topic
            for wanted in topic.partitions:
                key = (name, wanted.partition)
                known = partitions.get(key)
                if known is None:
                    partitions[key] = WantedPartition(key, wanted)
                else:
                    known.update(wanted)
        for forgotten in request.forgotten_topics_data:
            name = forgotten.topic_id if self.uses_topic_ids else forgotten.topic
            for partition in forgotten.partitions:
                partitions.pop((name, partition), None)

    def select(self, readings: list[Reading]) -> list[Reading]:
        """The readings worth telling.  What gave records goes to the end, so that all get their turn."""
        told = [reading for reading in readings if reading.wanted.must_tell(reading)]
        for reading in told:
            if reading.records_size_bytes:
                key = reading.wanted.key
                wanted = self.partitions.pop(key, None)
                if wanted is not None:
                    self.partitions[key] = wanted
        return told


class FetchContext:
    """One fetch request's part of a session: what to read, and what of it to tell.

    ``error_code`` is not zero if the session's id or epoch is refused: then there is nothing to read.
    """

    __slots__ = ("_expected_epoch", "_open", "_session", "error_code", "partitions")

    def __init__(
        self,
        partitions: Collection[WantedPartition] = (),
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        session: FetchSession | None = None,
        open_session: Callable[[int], FetchSession | None] | None = None,
    ) -> None:
        self._session = session
        self._expected_epoch = 0 if session is None else session.epoch
        self._open = open_session
        self.error_code: int = error_code
        self.partitions = partitions
        """In the order in which they share the request's bytes."""

    @property
    def is_overtaken(self) -> bool:
        """Whether another request of the session came meanwhile."""
        return self._session is not None and self._session.epoch != self._expected_epoch

    def preview(self, readings: list[Reading]) -> list[Reading]:
        """The readings that ``answer`` would tell; nothing is remembered of them."""
        if self.error_code or self.is_overtaken:
            return []
        if self._session is None:
            return readings
        return [reading for reading in readings if reading.wanted.would_tell(reading)]

    def answer_nothing(self) -> tuple[int, int]:
        """Error code and session id for a client that is told nothing, because it has to wait."""
        if self._session is None:
            return ErrorCode.NONE, NO_SESSION
        if self.is_overtaken:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, self._session.id
        return ErrorCode.NONE, self._session.id

    def answer(self, readings: list[Reading], now_ms: int) -> tuple[int, int, list[Reading]]:
        """Error code, session id and the readings to tell."""
        if self.error_code:
            return self.error_code, NO_SESSION, []
        session = self._session
        if session is not None:
            if self.is_overtaken:
                return ErrorCode.INVALID_FETCH_SESSION_EPOCH, NO_SESSION, []
            return ErrorCode.NONE, session.id, session.select(readings)
        if self._open is not None:
            session = self._open(now_ms)
            if session is not None:
                session.partitions = {reading.wanted.key: reading.wanted for reading in readings}
                for reading in readings:
                    reading.wanted.told_high_watermark = reading.high_watermark
                    reading.wanted.told_log_start = reading.log_start
                return ErrorCode.NONE, session.id, readings
        return ErrorCode.NONE, NO_SESSION, readings


class FetchSessions:
    """All sessions of a broker, at most ``slots`` of them (``max.incremental.fetch.session.cache.slots``).

    A consumer that gets no slot is answered in full each time, with session id 0.
    """

    def __init__(self, slots: int, new_id: Callable[[], int]) -> None:
        self.slots = slots
        self._new_id = new_id
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def context(
        self, request: "FetchRequest", version: int, now_ms: int, *, privileged: bool = False
    ) -> FetchContext:
        """Find, open, advance or close the session that ``request`` speaks of.

        Raises UNKNOWN_SERVER_ERROR for an id that none can have.
        """
        uses_topic_ids = version >= TOPIC_IDS_VERSION
        session_id, epoch = request.session_id, request.session_epoch
        if session_id not in SESSION_IDS:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(session_id, None)
            partitions = _partitions_of(request, uses_topic_ids)
            if epoch == FINAL_EPOCH:
                return FetchContext(partitions.values())

            def open_session(now_ms: int) -> FetchSession | None:
                return self._open(partitions, uses_topic_ids, privileged, now_ms)

            return FetchContext(partitions.values(), open_session=open_session)
        session = self._sessions.get(session_id)
        if session is None:
            return FetchContext(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return FetchContext(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return FetchContext(error_code=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.update(request)
        if not session.partitions:
            del self._sessions[session_id]
            return FetchContext()
        session.last_used_ms = now_ms
        self._sessions.move_to_end(session_id)
        session.epoch = epoch + 1 if epoch < EPOCH_MAX else 1
        return FetchContext(session.partitions.values(), session=session)

    def _open(
        self,
        partitions: dict[PartitionKey, WantedPartition],
        uses_topic_ids: bool,
        privileged: bool,
        now_ms: int,
    ) -> FetchSession | None:
        if len(self._sessions) >= self.slots and not self._evict_for(privileged, len(partitions), now_ms):
            return None
        session_id = self._new_id()
        while session_id == NO_SESSION or session_id in self._sessions or session_id not in SESSION_IDS:
            session_id = self._new_id()
        session = FetchSession(
            session_id, partitions, uses_topic_ids=uses_topic_ids, privileged=privileged, now_ms=now_ms
        )
        self._sessions[session_id] = session
        return session

    def _evict_for(self, privileged: bool, size: int, now_ms: int) -> bool:
        """Free a slot for a session of ``size`` partitions, if somebody has to give way to it."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > EVICTION_AGE_MS:
            del self._sessions[oldest.id]
            return True
        weakest: FetchSession | None = None
        for session in self._sessions.values():
            protected = now_ms - session.created_ms <= EVICTION_AGE_MS
            if protected and (session.privileged or not privileged):
                continue
            if weakest is None or _strength(session) < _strength(weakest):
                weakest = session
        if weakest is None or (privileged, size) <= _strength(weakest):
            return False
        del self._sessions[weakest.id]
        return True


def _strength(session: FetchSession) -> tuple[bool, int]:
    return session.privileged, len(session.partitions)


def named_partitions(request: "FetchRequest", version: int) -> Iterator[PartitionKey]:
    """What a request names; its session may know more."""
    uses_topic_ids = version >= TOPIC_IDS_VERSION
    for topic in request.topics:
        name = topic.topic_id if uses_topic_ids else topic.topic
        for wanted in topic.partitions:
            yield name, wanted.partition


def _partitions_of(request: "FetchRequest", uses_topic_ids: bool) -> dict[PartitionKey, WantedPartition]:
    """What a full request names.  A partition named twice keeps its first place and its last wishes."""
    partitions: dict[PartitionKey, WantedPartition] = {}
    for topic in request.topics:
        name = topic.topic_id if uses_topic_ids else topic.topic
        for wanted in topic.partitions:
            key = (name, wanted.partition)
            partitions[key] = WantedPartition(key, wanted)
    return partitions
