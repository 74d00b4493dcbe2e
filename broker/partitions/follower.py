"""One partition, as a broker that follows its leader sees it: what the answer to a fetch does to the log."""

from collections.abc import Generator
from enum import Enum, auto
from typing import Final, NamedTuple

from broker.config.topic_settings import TopicSettings
from broker.metadata.image import NO_LEADER, PartitionImage
from broker.partitions.replica import NO_EPOCH, ReadSurroundings, Replica
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.fetch import PartitionData
from protocol.records.batch import RecordBatch
from protocol.records.errors import CorruptRecords
from storage.config import LogConfig
from storage.errors import OffsetNotNext
from storage.partition_log import FollowerWrite, PartitionLog

FIRST_PAUSE_SECONDS: Final = 0.05
"""After an error: a leader that is new may know of it a moment later than its followers.  Pauses double up to
``replica.fetch.backoff.ms``."""


class Wanted(NamedTuple):
    """What a follower asks its leader for."""

    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start: int


class Cut(NamedTuple):
    """What has to go from the log before anything else is fetched.  Checkpoints come before and after it."""

    offset: int
    """Where the log ends then."""
    is_full: bool = False
    """Nothing is kept: the log starts there, too."""
    data: PartitionData | None = None
    """What is to be appended then: the answer begins with a batch that reaches across the log's start."""


class Outcome(Enum):
    """What comes of an answer."""

    GOES_ON = auto()
    """The next fetch follows, at the log end."""
    CUT = auto()
    """``cut`` has to be carried out first."""
    OUT_OF_RANGE = auto()
    """Where the leader's log starts and ends has to be found out first: see ``meet``."""
    RESTS = auto()
    """Something that may pass: the next fetch follows after a pause."""
    FAILED = auto()
    """Nothing is fetched until the metadata tells of another leadership."""


class Follower(Replica):
    """A replica that follows the leader of its partition, through all leaderships but this broker's own.

    It has no I/O of its own but the log's, and knows no time but what it is told: ``fetcher`` asks the
    leader, hands over the answers, and carries out cuts, which need checkpoints.

    *Truth.*  The log up to the high watermark is what was committed.  What lies above may differ from what
    the leader has, and goes when an answer says so (KIP-101, KIP-279, KIP-595).

    Invariant: nothing is appended while ``cut`` stands, nor after ``end``.
    """

    __slots__ = (
        "cut",
        "failures",
        "has_failed",
        "is_busy",
        "lag",
        "leader_id",
        "problem",
        "retry_at",
        "settings",
    )

    def __init__(
        self,
        log: PartitionLog,
        partition: PartitionImage,
        settings: TopicSettings,
        surroundings: ReadSurroundings,
    ) -> None:
        super().__init__(log, leader_epoch=partition.leader_epoch, surroundings=surroundings)
        self.settings = settings
        self.is_busy = False
        """The log is being cut or written to: it must be left alone until that is over."""
        self.problem = ""
        """What is to be said of the last outcome that was not good."""
        self._begin(partition)

    def __repr__(self) -> str:
        return f"<Follower of {self.topic}-{self.partition}, led by {self.leader_id} in {self.leader_epoch}>"

    @property
    def key(self) -> tuple[bytes, int]:
        """How Fetch names the partition."""
        return self.topic_id, self.partition

    def _begin(self, partition: PartitionImage) -> None:
        self.leader_id = partition.leader
        self.leader_epoch = partition.leader_epoch
        self.has_failed = False
        self.retry_at = 0.0
        """Trio's time before which nothing is fetched."""
        self.failures = 0
        """How often in a row nothing could be fetched."""
        self.lag: int | None = None
        """How far the log end is behind the leader's high watermark; None until the leader has said."""
        self.cut: Cut | None = None
        log = self.log
        if log.leader_epochs.latest == NO_EPOCH and log.log_end > log.high_watermark:
            # Nothing can be compared, so only what was committed counts.
            self.cut = Cut(log.high_watermark)

    def follow(self, partition: PartitionImage) -> bool:
        """Go on as the cluster's image now says; return whether that is another leadership.

        Then fetching begins anew, even if the leader is the same: it may have lost records in between.
        """
        if partition.leader_epoch == self.leader_epoch and partition.leader == self.leader_id:
            return False
        self._begin(partition)
        return True

    def change_settings(self, settings: TopicSettings) -> None:
        """Go by other settings from now on."""
        self.settings = settings
        self.log.config = LogConfig.from_settings(settings)

    def replace_log(self, log: PartitionLog) -> None:
        """Go on with a copy of the log that has all of it, at the same offsets."""
        assert log.log_end == self.log.log_end
        log.follow_high_watermark(self.log.high_watermark)
        log.config = self.log.config
        self.log = log

    # Fetching

    @property
    def is_in_sync(self) -> bool:
        """Whether the leader, when it last answered, had nothing committed that is not here."""
        return self.lag == 0

    def is_ready(self, now: float) -> bool:
        """Whether something is to be fetched; ``now`` is Trio's time."""
        return (
            self.ended is None
            and self.leader_id != NO_LEADER
            and not self.has_failed
            and self.cut is None
            and not self.is_busy
            and self.retry_at <= now
        )

    def wanted(self) -> Wanted:
        """What to ask for."""
        log = self.log
        return Wanted(self.leader_epoch, log.log_end, log.leader_epochs.latest, log.log_start)

    def take(
        self, asked: Wanted, data: PartitionData, *, now_ms: int
    ) -> Generator[FollowerWrite, None, Outcome]:
        """Do what an answer says, if it is one to what would be asked now; the outcome is what is returned.

        Each write that is yielded is to be run, in a thread perhaps, and finished.  Whoever lets others have
        their turn meanwhile says with ``is_busy`` that the log is to be left alone.

        Raises DiskFailure; what fitted is in the log then.
        """
        if (
            not self._is_led_in(asked.leader_epoch)
            or self.has_failed
            or self.cut is not None
            or self.is_busy
            or asked.fetch_offset != self.log.log_end
        ):
            return Outcome.GOES_ON
        if data.error_code:
            return self._take_error(data.error_code)
        if data.diverging_epoch.epoch >= 0:
            end = self._end_of_agreement(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
            self.problem = (
                f"the leader's epoch {data.diverging_epoch.epoch} ends at {data.diverging_epoch.end_offset}, "
                f"so what is here from {end} on goes"
            )
            self.cut = Cut(end)
            return Outcome.CUT
        if data.records:
            outcome = yield from self._append(data, now_ms)
            if outcome is not Outcome.GOES_ON:
                return outcome
            if not self._is_led_in(asked.leader_epoch):
                return Outcome.GOES_ON  # somebody else leads since the write began
        self.failures = 0
        log = self.log
        self.lag = max(data.high_watermark - log.log_end, 0)
        is_higher = data.high_watermark > log.high_watermark
        log.follow_high_watermark(data.high_watermark)
        if data.log_start_offset > log.log_start:
            log.delete_records_before(min(data.log_start_offset, log.high_watermark))
        if is_higher and self._watchers:
            self.tell_watchers()
        return Outcome.GOES_ON

    def _is_led_in(self, leader_epoch: int) -> bool:
        return self.ended is None and self.leader_epoch == leader_epoch

    def _append(self, data: PartitionData, now_ms: int) -> Generator[FollowerWrite, None, Outcome]:
        log = self.log
        leader_epoch = self.leader_epoch
        try:
            for write in log.writes_of(data.records, now_ms=now_ms, leader_epoch=leader_epoch):
                yield write
                if not self._is_led_in(leader_epoch) or self.log is not log:
                    break
        except CorruptRecords as damage:
            self.problem = f"what comes behind offset {log.log_end} is damaged: {damage}"
            return Outcome.RESTS
        except OffsetNotNext as refusal:
            if self._starts_inside(data):
                self.cut = Cut(refusal.base_offset, is_full=True, data=data)
                self.problem = f"the leader's log starts inside the batch at {refusal.base_offset}"
                return Outcome.CUT
            self.problem = str(refusal)
            self.has_failed = True
            return Outcome.FAILED
        return Outcome.GOES_ON

    def _take_error(self, code: int) -> Outcome:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return Outcome.OUT_OF_RANGE
        try:
            self.problem = ErrorCode(code).name
        except ValueError:
            self.problem = f"error {code}"
        if code == ErrorCode.FENCED_LEADER_EPOCH:
            # The leader knows of a later leadership than the one that was asked for, and so will this broker.
            self.has_failed = True
            return Outcome.FAILED
        return Outcome.RESTS

    def _end_of_agreement(self, epoch: int, end_offset: int) -> int:
        """Up to where the log is the leader's, as far as that can be known from one answer.

        ``epoch`` is the latest of the leader's that is not above ours, and it ends at ``end_offset``.
        """
        log = self.log
        known, end = log.end_offset_for_epoch(epoch)
        if known == NO_EPOCH:
            return min(end_offset, log.log_end)
        if known != epoch:  # the next fetch, which names the earlier epoch, goes further
            return min(end, log.log_end)
        return min(end, end_offset, log.log_end)

    def _starts_inside(self, data: PartitionData) -> bool:
        """Whether the log is to start inside the first of these batches (DeleteRecords).

        Either it is empty, or the leader's starts there and has none of what this one has before that batch.
        Kafka's follower gives up for good in the second case.
        """
        log = self.log
        first = RecordBatch(data.records)
        is_needless = log.log_start == log.log_end or first.base_offset < data.log_start_offset
        return is_needless and first.base_offset < log.log_end <= first.last_offset

    def meet(self, leader_end: int, leader_start: int) -> Outcome:
        """Find a place from which the leader can go on, whose log has these ends and not what was asked for.

        What lies below is not compared, as in Kafka: only an unclean election leads here with records that
        are not the leader's.
        """
        log = self.log
        if leader_end < log.log_end:
            self.problem = f"the leader's log ends at {leader_end}, before the one here"
            self.cut = Cut(leader_end)
            return Outcome.CUT
        if leader_start > log.log_end:
            self.problem = f"the leader's log starts at {leader_start}, behind the end of the one here"
            self.cut = Cut(leader_start, is_full=True)
            return Outcome.CUT
        self.problem = f"offset {log.log_end} is out of range for the leader"
        return Outcome.RESTS

    def rest(self, now: float, longest_seconds: float) -> None:
        """Fetch nothing for a while, which is the longer the more often this comes."""
        seconds = min(FIRST_PAUSE_SECONDS * (1 << min(self.failures, 20)), longest_seconds)
        self.failures += 1
        self.retry_at = now + seconds

    def truncate(self, *, now_ms: int) -> None:
        """Carry out ``cut``.  Raises DiskFailure, after which the log must be opened anew."""
        cut, self.cut = self.cut, None
        assert cut is not None
        if cut.is_full:
            self.log.truncate_fully_and_start_at(cut.offset, now_ms=now_ms)
        else:
            self.log.truncate_to(cut.offset, now_ms=now_ms)

    def end(self, reason: KafkaError) -> None:
        """This broker follows the partition no longer: whoever waits for something is told."""
        self.ended = reason
        self.tell_watchers()
