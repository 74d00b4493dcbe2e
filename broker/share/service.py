"""The share partitions of this broker: loaded, stored, kept in time, and let go of."""

import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from broker.coordination.tickets import Ticket
from broker.coordination.timers import Timers
from broker.errors import ErrorCode, KafkaError, error_code_of
from broker.metadata.image import MetadataImage, ResourceType
from broker.metadata.topic_names import SHARE_GROUP_STATE
from broker.share.dead_letters import DeadLetterQueues
from broker.share.group_settings import group_setting, share_settings
from broker.share.held_partition import HeldPartition
from broker.share.in_flight import DeadLetter, Transition
from broker.share.partition import Acknowledgement, SharePartition
from broker.share.reset import reset_offset
from broker.share.sessions import SessionKey, ShareSessions, TopicPartition
from broker.share.state import Change, Outcome, SharePartitionKey
from broker.share.state_batches import NO_START_OFFSET, StateBatch
from broker.share.state_commands import REFUSAL_TEXTS
from broker.share.state_questions import (
    NOT_READY,
    RETRIES_MAX,
    RETRY_SECONDS,
    ReadState,
    StateQuestion,
    WriteState,
    ask_coordinator,
)
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.metadata.replay import MetadataChanges
    from broker.network.call import ConnectionState
    from broker.services import Services
    from broker.share.fetching import ShareFetching

WOKEN_BEFORE_YIELD: Final = 20
"""Waiting fetches looked at in a row: then requests have their turn."""

_ENDING: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
"""After these errors of the share coordinator the share partition is not kept any longer."""

UNKNOWN_PARTITION_TEXT: Final = "This server does not host this topic-partition."


class Acknowledged(NamedTuple):
    """The answer about the acknowledgements of one partition."""

    error: ErrorCode = ErrorCode.NONE
    text: str | None = None


class ShareService:
    """Share partitions come into being with the first fetch of a group that names them.

    What is stored is the share coordinator's; what members hold is known here only, and is available to
    others when this broker starts again.
    """

    def __init__(self, services: "Services", nursery: trio.Nursery) -> None:
        self.services = services
        self.sessions = ShareSessions(services.config.get("group.share.max.share.sessions"))
        self._nursery: trio.Nursery | None = nursery
        self._held: dict[SharePartitionKey, HeldPartition] = {}
        self._timers: Timers[SharePartitionKey] = Timers()
        self._sleep: trio.CancelScope | None = None
        self._woken: deque[ShareFetching] = deque()
        self._has_woken = trio.Event()
        self._dead_letter_queues = DeadLetterQueues(services)

    def end(self) -> None:
        """Begin nothing any more: the broker stops."""
        self._nursery = None

    def _start_soon(self, function: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """Do something beside; if the broker stops, what is stored tells the next start of it."""
        if self._nursery is not None:
            self._nursery.start_soon(function, *arguments)

    # Time

    def now_ms(self) -> int:
        """Trio's time.  What is due at a millisecond is due, not a hair early, when the loop wakes for it."""
        return math.floor(self.services.clock.current_time() * 1000 + 0.001)

    async def keep_time(self) -> None:
        """End locks when they are over, until cancelled."""
        while True:
            earliest_ms = self._timers.earliest_ms()
            deadline = math.inf if earliest_ms is None else earliest_ms / 1000
            with trio.CancelScope(deadline=deadline) as self._sleep:
                await trio.sleep_forever()
            self._sleep = None
            while (key := self._timers.take_due(self.now_ms())) is not None:
                held = self._held.get(key)
                if held is not None:
                    self._expire(held)

    def _watch_locks(self, held: HeldPartition) -> None:
        deadline_ms = held.partition.deadline_ms()
        if deadline_ms is None:
            return
        self._timers.wake_by(held.key, deadline_ms)
        if self._sleep is not None and deadline_ms / 1000 < self._sleep.deadline:
            self._sleep.deadline = deadline_ms / 1000

    def _expire(self, held: HeldPartition) -> None:
        stored, dead_letters = held.partition.expire(self.now_ms())
        self._watch_locks(held)
        if not stored:
            return

        def written(_: KafkaError | None) -> None:
            held.partition.settle()
            held.wake()
            self._bury(held, dead_letters)

        self._write(held, stored, written)
        held.wake()

    # Fetches that wait

    def woken(self, fetching: "ShareFetching") -> None:
        """Have a look at a fetch soon: something may have become available for it."""
        self._woken.append(fetching)
        self._has_woken.set()

    async def serve_woken(self) -> None:
        """Look at fetches that were woken, until cancelled."""
        while True:
            await self._has_woken.wait()
            self._has_woken = trio.Event()
            served = 0
            while self._woken:
                self._woken.popleft().look_again()
                served += 1
                if served % WOKEN_BEFORE_YIELD == 0:
                    await trio.lowlevel.checkpoint()

    def read_aside(self, fetching: "ShareFetching") -> None:
        """Let a thread read what a fetch needs from the disk."""
        self._start_soon(fetching.read_aside)

    # Share partitions

    def records_acquired(self, held: HeldPartition) -> None:
        """See to it that locks end in time."""
        self._watch_locks(held)

    def find(self, group_id: str, partition: TopicPartition) -> HeldPartition | None:
        """The share partition, if it is kept here."""
        held = self._held.get(SharePartitionKey(group_id, *partition))
        if held is not None and held.leader.ended is not None:
            self._end(held, held.leader.ended)
            return None
        return held

    def hold(self, group_id: str, partition: TopicPartition) -> HeldPartition:
        """The share partition, which is loaded now if it was not kept.

        Raises ``KafkaError`` if this broker does not lead the topic's partition.
        """
        held = self.find(group_id, partition)
        if held is None:
            key = SharePartitionKey(group_id, *partition)
            leader = self.services.partitions.leader(*partition)
            settings = share_settings(self.services, group_id)
            held = self._held[key] = HeldPartition(key, leader, SharePartition(settings))
            self._load(held)
        return held

    def _end(self, held: HeldPartition, reason: KafkaError) -> None:
        """Keep it no longer; what members hold of it is lost to them."""
        if self._held.get(held.key) is held:
            del self._held[held.key]
            self._timers.forget(held.key)
        held.ended = reason
        held.wake()

    def end_group(self, group_id: str) -> None:
        """Keep nothing of the group any longer; what is fetched next is loaded again."""
        reason = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        for held in [each for each in self._held.values() if each.key.group_id == group_id]:
            self._end(held, reason)

    def published(self, image: MetadataImage, changes: "MetadataChanges") -> None:
        """Groups may have other settings, partitions another leader."""
        groups = {name for kind, name in changes.configs if kind == ResourceType.GROUP}
        everything = any(kind == ResourceType.BROKER for kind, _ in changes.configs) or changes.features
        for held in list(self._held.values()):
            if held.leader.ended is not None:
                self._end(held, held.leader.ended)
            elif everything or held.key.group_id in groups:
                held.partition.settings = share_settings(self.services, held.key.group_id)
                held.wake()

    # What is stored

    def _load(self, held: HeldPartition) -> None:
        def loaded(outcome: Outcome) -> None:
            if held.ended is not None:
                return
            error = _failure(outcome, "read")
            try:
                if error is not None:
                    raise error
                start_offset = outcome.start_offset
                if start_offset == NO_START_OFFSET:
                    strategy = group_setting(self.services, held.key.group_id, "share.auto.offset.reset")
                    start_offset = reset_offset(strategy, held.leader, self.services.clock.now_ms())
                dead_letters = held.partition.load(start_offset, outcome.state_epoch, outcome.batches)
            except (KafkaError, StorageError, ValueError) as failure:
                if not isinstance(failure, KafkaError):
                    self.services.log.error(f"the state of {held.key} cannot be used: {failure}")
                    failure = KafkaError(error_code_of(failure))
                self._end(held, failure)
                return
            held.is_loaded = True
            held.wake()
            self._bury(held, dead_letters)

        self._ask(held, ReadState(held.key, held.leader_epoch), loaded)

    def _write(
        self, held: HeldPartition, stored: Sequence[StateBatch], done: Callable[[KafkaError | None], None]
    ) -> None:
        """Have the share coordinator keep these; then call ``done``, with the reason if it does not."""
        partition = held.partition
        change = Change(
            partition.state_epoch,
            held.leader_epoch,
            partition.start_offset,
            partition.delivery_complete_count,
            stored,
        )

        def written(outcome: Outcome) -> None:
            error = _failure(outcome, "write")
            if error is not None and error.code in _ENDING:
                self._end(held, error)
            done(error)

        self._ask(held, WriteState(held.key, change), written)

    def _ask(
        self,
        held: HeldPartition,
        question: StateQuestion,
        done: Callable[[Outcome], None],
        retries: int = 0,
    ) -> None:
        """Ask the share coordinator, again if it is not ready; ``done`` hears the outcome, maybe at once.

        It is not ready either while its topic cannot be made: enough brokers may be there the next time.
        """
        ticket = Ticket(lambda code: Outcome(code, REFUSAL_TEXTS.get(code)))

        def ask(_: KafkaError | None) -> None:
            ask_coordinator(self.services, question, ticket)  # which says so if there is no topic
            ticket.then(settled)

        def settled() -> None:
            outcome = ticket.outcome
            if outcome.error in NOT_READY and retries < RETRIES_MAX and held.ended is None:
                self._start_soon(self._ask_later, held, question, done, retries + 1)
            else:
                done(outcome)

        self.services.automatic_topics.ensure(SHARE_GROUP_STATE, ask)

    async def _ask_later(
        self,
        held: HeldPartition,
        question: StateQuestion,
        done: Callable[[Outcome], None],
        retries: int,
    ) -> None:
        await trio.sleep(RETRY_SECONDS)
        self._ask(held, question, done, retries)

    # Acknowledging

    def acknowledge(
        self, session: SessionKey, partition: TopicPartition, acknowledgements: Iterable[Acknowledgement]
    ) -> Ticket[Acknowledged]:
        """What a member says of records of one partition."""
        ticket: Ticket[Acknowledged] = Ticket(Acknowledged)
        held = self.find(session.group_id, partition)
        if held is None:
            ticket.settle(Acknowledged(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_PARTITION_TEXT))
            return ticket
        try:
            transition = held.partition.acknowledge(session.member_id, acknowledgements, self.now_ms())
        except KafkaError as error:
            ticket.settle(Acknowledged(error.code, error.message))
            return ticket
        self._watch_locks(held)
        self._store(held, transition, ticket)
        return ticket

    def _store(self, held: HeldPartition, transition: Transition, ticket: Ticket[Acknowledged]) -> None:
        if not transition.stored:
            ticket.settle(Acknowledged())
            return

        def written(error: KafkaError | None) -> None:
            dead_letters = held.partition.finish(transition, self.now_ms(), is_stored=error is None)
            self._watch_locks(held)
            ticket.settle(Acknowledged() if error is None else Acknowledged(error.code, error.message))
            held.wake()
            self._bury(held, dead_letters)

        self._write(held, transition.stored, written)

    def _bury(self, held: HeldPartition, dead_letters: Sequence[DeadLetter]) -> None:
        """Send records that were given up to the dead letter queue, and archive them."""
        for dead in dead_letters:
            self._start_soon(self._bury_one, held, dead)

    async def _bury_one(self, held: HeldPartition, dead: DeadLetter) -> None:
        await self._dead_letter_queues.take(held, dead)
        stored = held.partition.archive_dead(dead)

        def written(_: KafkaError | None) -> None:
            held.partition.settle()
            held.wake()

        self._write(held, [stored], written)

    # Sessions

    def close_session(self, key: SessionKey) -> None:
        """End a member's session: others may have what it holds."""
        session = self.sessions.close(key)
        if session is None:
            return
        for partition in session.partitions:
            held = self.find(key.group_id, partition)
            if held is not None:
                transition = held.partition.release(key.member_id)
                self._store(held, transition, Ticket(Acknowledged))

    def watch_connection(self, connection: "ConnectionState") -> None:
        """End the session that ``connection`` opens when the connection ends."""
        number = connection.number
        connection.when_closed(self, lambda: self._connection_closed(number))

    def _connection_closed(self, number: int) -> None:
        found = self.sessions.connection_closed(number)
        if found is None:
            return
        key, lasts = found
        if lasts:
            self.close_session(key)
        if not self.sessions.has_members(key.group_id):
            self.sessions.forget_group(key.group_id)
            self.end_group(key.group_id)


def _failure(outcome: Outcome, doing: str) -> KafkaError | None:
    """What a client of the group is told of the share coordinator's error; None if there is none."""
    code, text = outcome.error, f"Error in {doing} state RPC. {outcome.text}"
    if code is ErrorCode.NONE:
        return None
    if code in NOT_READY:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    elif code in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH):
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    elif code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        code = ErrorCode.UNKNOWN_SERVER_ERROR
    return KafkaError(code, text)
