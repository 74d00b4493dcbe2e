"""Fetching what other brokers lead: a few tasks for each of them, each with a connection of its own."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import trio

from broker.coordination.partitioning import java_string_hash
from broker.life.own_epoch import own_broker_epoch
from broker.metadata.features import replica_fetch_version, replica_list_offsets_version
from broker.metadata.image import NO_LEADER
from broker.network.node_client import NodeUnreachable
from broker.partitions.fetcher_session import FetcherSession
from broker.partitions.follower import Cut, Follower, Outcome, Wanted
from broker.quotas.replication import ReplicationQuota, is_named
from protocol.error_codes import ErrorCode
from protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from storage.errors import DiskFailure, StorageError

if TYPE_CHECKING:
    from broker.network.node_client import NodeClient
    from broker.partitions.manager import PartitionManager
    from broker.services import Services
    from storage.log_directory import LogDirectory

LATEST: Final = -1
EARLIEST: Final = -2
"""ListOffsets' names for the ends of a log."""

FAILURES_TOLD_FROM: Final = 4
"""The operator hears of a partition that cannot be fetched after so many tries."""

LOOK_SECONDS: Final = 0.5
"""So often the leader is told of log starts that have moved without it, by this broker's retention."""

ASIDE_BYTES: Final = 128 << 10
"""Writes from this size on are made in a thread."""

TURN_BYTES: Final = 128 << 10
TURN_PARTITIONS: Final = 8
"""After so many bytes, or records of so many partitions, others have their turn."""

GATHER_SECONDS: Final = 0.02
"""After this a partition that has come does not wait any longer for the answer about the others, in which
there may be nothing for half a second.  The request is given up with its connection, and asked anew."""

NAMING_SECONDS: Final = 0.002
"""Times the number of partitions: requests that name all of them are not given up sooner than this after each
other.  While thousands of replicas are made, new ones come all the time."""

NAMED_ANEW_MAX: Final = 500
"""A fetcher of more partitions lets new ones wait, as Kafka does: it would have to name them all."""

RETRY_SECONDS: Final = 1.0
"""Before a checkpoint is tried again for which there was no room."""

QUOTA_SECONDS_MAX: Final = 1.0
"""The longest that a throttled partition rests: the limit may be another one by then."""

Key: TypeAlias = tuple[bytes, int]
"""Topic id and partition."""


class Fetchers:
    """All fetchers: ``num.replica.fetchers`` for each broker that leads what is followed here."""

    def __init__(self, services: "Services", manager: "PartitionManager") -> None:
        self.services = services
        self.manager = manager
        self.quota = ReplicationQuota(
            services.config, "follower.replication.throttled.rate", services.clock.now_ms
        )
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        self._at: dict[Follower, Fetcher] = {}
        self._per_leader: int = services.config.get("num.replica.fetchers")

    def follow(self, follower: Follower) -> None:
        """Fetch for a follower from now on, from the leader that it knows."""
        self.release(follower)
        if follower.leader_id == NO_LEADER or follower.ended is not None:
            return
        place = follower.leader_id, self._number_of(follower)
        fetcher = self._fetchers.get(place)
        if fetcher is None:
            fetcher = self._fetchers[place] = Fetcher(self, *place)
            self.manager.start_soon(fetcher.run)
        self._at[follower] = fetcher
        fetcher.add(follower)

    def _number_of(self, follower: Follower) -> int:
        number = 31 * java_string_hash(follower.topic) + follower.partition
        return abs(number) % self._per_leader

    def release(self, follower: Follower) -> None:
        """Fetch for it no longer.  What is on its way is not written any more."""
        fetcher = self._at.pop(follower, None)
        if fetcher is not None:
            fetcher.remove(follower)

    def forget(self, fetcher: "Fetcher") -> None:
        """A fetcher has nothing to do any more, and ends."""
        if self._fetchers.get(fetcher.place) is fetcher:
            del self._fetchers[fetcher.place]

    def apply_settings(self) -> None:
        """Follow ``num.replica.fetchers``."""
        per_leader = self.services.config.get("num.replica.fetchers")
        if per_leader != self._per_leader:
            self._per_leader = per_leader
            for follower in list(self._at):
                self.follow(follower)

    def brokers_changed(self, broker_ids: Iterable[int]) -> None:
        """These may be reachable again, perhaps elsewhere."""
        for (leader_id, _), fetcher in self._fetchers.items():
            if leader_id in broker_ids:
                fetcher.try_again()


class Fetcher:
    """Fetches from one broker for some of the partitions that it leads.

    One request is under way at a time, in an incremental session.  Everything but waiting for answers, for
    the disk and for others' turns happens at once, so that a partition which leaves is left alone from then.
    """

    def __init__(self, fetchers: Fetchers, leader_id: int, number: int) -> None:
        self.place = leader_id, number
        self._fetchers = fetchers
        self._services = fetchers.services
        self._manager = fetchers.manager
        self._leader_id = leader_id
        self._followers: dict[Key, Follower] = {}
        self._session: FetcherSession[Key, Wanted] = FetcherSession()
        self._is_misled = False
        """The leader takes for known what was not heeded, and would not repeat it: high watermarks and log
        starts that came with a divergence, or in answer to what was asked in an earlier epoch."""
        self._touched: dict[Key, None] = {}
        """Partitions of which the leader may have to be told something else."""
        self._resting: dict[Follower, None] = {}
        self._to_cut: list[Follower] = []
        self._to_flush: list[Follower] = []
        self._changed = trio.Event()
        self._scope = trio.CancelScope()
        self._poll = trio.CancelScope()
        """Around the request that is under way."""
        self._looked_at = 0.0
        """When all partitions were last compared with what the leader knows of them."""
        self._named_at = 0.0
        """When a request last named all of them."""
        self._failures = 0

    def __repr__(self) -> str:
        return f"<Fetcher {self.place[1]} of broker {self._leader_id}, {len(self._followers)} partitions>"

    def add(self, follower: Follower) -> None:
        """Fetch for it, too."""
        self._followers[follower.key] = follower
        self._touched[follower.key] = None
        self._is_misled |= follower.key in self._session.told
        if follower.retry_at:
            self._resting[follower] = None
        if follower.cut is not None:
            self._to_cut.append(follower)
        self._changed.set()
        if len(self._followers) <= NAMED_ANEW_MAX:
            due = self._named_at + NAMING_SECONDS * len(self._followers)
            due = max(due, trio.current_time() + GATHER_SECONDS)
            self._poll.deadline = min(self._poll.deadline, due)

    def remove(self, follower: Follower) -> None:
        """Fetch for it no longer."""
        key = follower.key
        if self._followers.get(key) is follower:
            del self._followers[key]
            self._touched[key] = None
            self._resting.pop(follower, None)
            if not self._followers:
                self._fetchers.forget(self)
                self._scope.cancel()

    def try_again(self) -> None:
        """The leader may be reachable again."""
        for follower in self._resting:
            follower.retry_at = 0.0
        self._changed.set()

    # The task

    async def run(self) -> None:
        """Fetch until there is nothing to fetch for."""
        purpose = f"fetcher-{self.place[1]}"
        client = self._services.nodes.new_fetcher_client(self._leader_id, purpose)
        try:
            with self._scope:
                while self._followers:
                    await self._fetch(client)
        finally:
            client.close()
        self._fetchers.forget(self)

    async def _fetch(self, client: "NodeClient") -> None:
        """One request, and what comes of it; or a wait until there is something to ask for."""
        await self._cut_what_is_due()
        await self._flush_what_is_due()
        self._changed = trio.Event()
        request = self._plan()
        if request is None:
            with trio.move_on_at(self._next_try()):
                await self._changed.wait()
            return
        config = self._services.config
        answer: FetchResponse | None = None
        try:
            with trio.CancelScope() as self._poll:
                answer = await client.ask(
                    request,
                    version=replica_fetch_version(self._services.image.metadata_version),
                    timeout_seconds=config.get("replica.socket.timeout.ms") / 1000,
                )
        except NodeUnreachable as reason:
            self._session.start_anew()
            self._services.log.warn_seldom(
                f"broker {self._leader_id} cannot be fetched from: {reason}",
                about=f"fetching from broker {self._leader_id}",
            )
            self._rest(self._followers.values())
            return
        if answer is None:
            self._session.start_anew()
        else:
            await self._take(client, answer)

    def _next_try(self) -> float:
        """When there is something to do again that nobody tells of."""
        return min((follower.retry_at for follower in (*self._resting, *self._to_cut)), default=float("inf"))

    # What is asked for

    def _plan(self) -> FetchRequest | None:
        """The next request; None if there is nothing that can be fetched."""
        now = trio.current_time()
        due = [follower for follower in self._resting if follower.retry_at <= now]
        for rested in due:
            self._resting.pop(rested, None)
            self._touched[rested.key] = None
        session = self._session
        if self._is_misled:
            self._is_misled = False
            session.start_anew()
        if session.is_full:
            self._named_at = now
        if session.is_full or now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            keys: Iterable[Key] = list(self._followers)
        else:
            keys = self._touched
        self._touched = {}
        throttle_ms: int | None = None
        wishes: dict[Key, Wanted] = {}
        dropped: list[Key] = []
        for key in keys:
            follower = self._followers.get(key)
            if follower is None or not follower.is_ready(now):
                dropped.append(key)
                continue
            if not follower.is_in_sync and self._is_throttled(follower):
                if throttle_ms is None:
                    throttle_ms = self._fetchers.quota.throttle_ms()
                if throttle_ms:
                    follower.retry_at = now + min(throttle_ms / 1000, QUOTA_SECONDS_MAX)
                    self._resting[follower] = None
                    dropped.append(key)
                    continue
            wishes[key] = follower.wanted()
        named, forgotten = session.plan(wishes, dropped)
        if not session.told and not forgotten:
            return None
        return self._request(named, forgotten)

    def _is_throttled(self, follower: Follower) -> bool:
        named = follower.settings["follower.replication.throttled.replicas"]
        return is_named(named, follower.partition, self._services.node_id)

    def _request(self, named: dict[Key, Wanted], forgotten: Sequence[Key]) -> FetchRequest:
        config = self._services.config
        max_bytes = config.get("replica.fetch.max.bytes")
        topics: dict[bytes, list[FetchPartition]] = {}
        for (topic_id, partition), wanted in named.items():
            topics.setdefault(topic_id, []).append(
                FetchPartition(
                    partition=partition,
                    current_leader_epoch=wanted.leader_epoch,
                    fetch_offset=wanted.fetch_offset,
                    last_fetched_epoch=wanted.last_fetched_epoch,
                    log_start_offset=wanted.log_start,
                    partition_max_bytes=max_bytes,
                )
            )
        forgotten_topics: dict[bytes, list[int]] = {}
        for topic_id, partition in forgotten:
            forgotten_topics.setdefault(topic_id, []).append(partition)
        return FetchRequest(
            replica_state=ReplicaState(
                replica_id=self._services.node_id, replica_epoch=own_broker_epoch(self._services)
            ),
            max_wait_ms=config.get("replica.fetch.wait.max.ms"),
            min_bytes=config.get("replica.fetch.min.bytes"),
            max_bytes=config.get("replica.fetch.response.max.bytes"),
            session_id=self._session.id,
            session_epoch=self._session.epoch,
            topics=[FetchTopic(topic_id=topic_id, partitions=some) for topic_id, some in topics.items()],
            forgotten_topics_data=[
                ForgottenTopic(topic_id=topic_id, partitions=some)
                for topic_id, some in forgotten_topics.items()
            ],
        )

    # What is answered

    async def _take(self, client: "NodeClient", answer: FetchResponse) -> None:
        if answer.error_code:
            self._take_refusal(answer.error_code)
            return
        self._failures = 0
        told = self._session.told
        self._session.note_answer(answer.session_id)
        out_of_range: list[Follower] = []
        bytes_in_a_row = partitions_in_a_row = 0
        for topic in answer.responses:
            for data in topic.partitions:
                key = topic.topic_id, data.partition_index
                known, asked = self._followers.get(key), told.get(key)
                if known is None or asked is None:
                    continue
                if await self._take_one(known, asked, data) is Outcome.OUT_OF_RANGE:
                    out_of_range.append(known)
                if data.records:
                    bytes_in_a_row += len(data.records)
                    partitions_in_a_row += 1
                    if bytes_in_a_row >= TURN_BYTES or partitions_in_a_row >= TURN_PARTITIONS:
                        await trio.lowlevel.checkpoint()
                        bytes_in_a_row = partitions_in_a_row = 0
        if out_of_range:
            await self._meet(client, out_of_range)

    def _take_refusal(self, code: int) -> None:
        """The leader does not go on with the session."""
        self._session.forget()
        self._failures += 1
        if self._failures > 1 or code not in (
            ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
            ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ):
            self._services.log.warn_seldom(
                f"broker {self._leader_id} refuses fetches with error {code}",
                about=f"fetching from broker {self._leader_id}",
            )
            self._rest(self._followers.values())

    async def _take_one(self, follower: Follower, asked: Wanted, data: PartitionData) -> Outcome:
        self._touched[follower.key] = None
        try:
            outcome = await self._carry_out(follower, asked, data)
        except DiskFailure as failure:
            self._note_failure(follower, failure)
            return Outcome.RESTS
        except StorageError as damage:
            self._give_up(follower, damage)
            return Outcome.FAILED
        if data.records:
            if self._is_throttled(follower):
                self._fetchers.quota.record(len(data.records))
            if follower.log.needs_flush:
                self._to_flush.append(follower)
        if follower.ended is None and self._followers.get(follower.key) is follower:
            self._see_to(follower, outcome)
        return outcome

    async def _carry_out(self, follower: Follower, asked: Wanted, data: PartitionData) -> Outcome:
        """Let the follower do what the answer says.  Raises DiskFailure."""
        steps = follower.take(asked, data, now_ms=self._services.clock.now_ms())
        try:
            while True:
                write = next(steps)
                if write.size_bytes < ASIDE_BYTES:
                    write.run()
                else:
                    follower.is_busy = True
                    try:
                        # A disk that cannot keep up holds whoever writes to it: not the loop.
                        await self._services.run_blocking(write.run)
                    except BaseException:
                        write.give_up()
                        raise
                    finally:
                        follower.is_busy = False
                write.finish()
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome
        finally:
            self._let_go(follower)

    def _let_go(self, follower: Follower) -> None:
        """Nobody works on a follower's log any more; it may have another leader since, or be none."""
        if follower.ended is not None:
            self._manager.is_busy_no_longer(follower)
        elif self._followers.get(follower.key) is not follower:
            self._fetchers.follow(follower)  # which could not do anything until now

    def _see_to(self, follower: Follower, outcome: Outcome) -> None:
        name = f"{follower.topic}-{follower.partition}"
        if outcome is Outcome.CUT:
            self._services.log.info(f"{name}: {follower.problem}")
            self._to_cut.append(follower)
        elif outcome is Outcome.RESTS:
            self._rest([follower])
            if follower.failures >= FAILURES_TOLD_FROM:  # a leader may be new, and some know of it sooner
                self._services.log.warn_seldom(
                    f"{name} is not fetched from broker {self._leader_id} for a while: {follower.problem}",
                    about=f"fetching of {name}",
                )
        elif outcome is Outcome.FAILED:
            line = (
                f"{name} is not fetched from broker {self._leader_id} until another leadership: "
                f"{follower.problem}"
            )
            if follower.problem == ErrorCode.FENCED_LEADER_EPOCH.name:  # of all of its partitions, perhaps
                self._services.log.warn_seldom(line, about=f"leaderships of broker {self._leader_id}")
            else:
                self._services.log.warn(line)

    def _give_up(self, follower: Follower, damage: StorageError) -> None:
        """As in Kafka, a log with which something unexpected is the matter holds up no others."""
        follower.problem = str(damage)
        follower.has_failed = True
        self._see_to(follower, Outcome.FAILED)

    def _note_failure(self, follower: Follower, failure: DiskFailure) -> None:
        if not self._manager.note_failure_of(follower.log, failure):
            follower.problem = str(failure)
            self._see_to(follower, Outcome.RESTS)
            self._manager.unwritable.note((follower.topic, follower.partition), failure)

    def _rest(self, followers: Iterable[Follower]) -> None:
        now = trio.current_time()
        longest_seconds = self._services.config.get("replica.fetch.backoff.ms") / 1000
        for follower in followers:
            follower.rest(now, longest_seconds)
            self._resting[follower] = None
            self._touched[follower.key] = None

    # Finding a place from which to go on

    async def _meet(self, client: "NodeClient", followers: Sequence[Follower]) -> None:
        """Ask where the leader's logs start and end, whose offsets do not reach what was asked for."""
        epochs = {follower: follower.leader_epoch for follower in followers}
        try:
            ends = await self._list_offsets(client, epochs, LATEST)
            starts = await self._list_offsets(client, epochs, EARLIEST)
        except NodeUnreachable:
            self._session.start_anew()
            self._rest(self._followers.values())
            return
        for follower, epoch in epochs.items():
            if self._followers.get(follower.key) is not follower or follower.leader_epoch != epoch:
                continue
            end, start = ends.get(follower), starts.get(follower)
            if end is None or start is None:
                follower.problem = "the leader does not say where its log starts and ends"
                self._see_to(follower, Outcome.RESTS)
            else:
                self._see_to(follower, follower.meet(end, start))

    async def _list_offsets(
        self, client: "NodeClient", epochs: dict[Follower, int], timestamp: int
    ) -> dict[Follower, int]:
        """One end of each log, of which the leader has said it.  Raises NodeUnreachable."""
        topics: dict[str, list[ListOffsetsPartition]] = {}
        asked: dict[tuple[str, int], Follower] = {}
        for follower, epoch in epochs.items():
            asked[follower.topic, follower.partition] = follower
            topics.setdefault(follower.topic, []).append(
                ListOffsetsPartition(
                    partition_index=follower.partition, current_leader_epoch=epoch, timestamp=timestamp
                )
            )
        answer: ListOffsetsResponse = await client.ask(
            ListOffsetsRequest(
                replica_id=self._services.node_id,
                topics=[ListOffsetsTopic(name=name, partitions=some) for name, some in topics.items()],
            ),
            version=replica_list_offsets_version(self._services.image.metadata_version),
            timeout_seconds=self._services.config.get("replica.socket.timeout.ms") / 1000,
        )
        found: dict[Follower, int] = {}
        for topic in answer.topics:
            for partition in topic.partitions:
                known = asked.get((topic.name, partition.partition_index))
                if known is not None and not partition.error_code:
                    found[known] = partition.offset
        return found

    # What needs the disk

    async def _flush_what_is_due(self) -> None:
        """Before the leader is told of records that ``flush.messages`` wants on disk."""
        followers, self._to_flush = self._to_flush, []
        for follower in followers:
            if follower.ended is None:
                await self._manager.flush(follower.log)

    async def _cut_what_is_due(self) -> None:
        """Shorten logs, those of each directory between two checkpoints that serve all of them."""
        followers, self._to_cut = self._to_cut, []
        groups: dict[LogDirectory, list[tuple[Follower, Cut]]] = {}
        for follower in dict.fromkeys(followers):
            cut = follower.cut
            if (
                cut is None
                or follower.is_busy
                or follower.ended is not None
                or self._followers.get(follower.key) is not follower
            ):
                continue
            if follower.retry_at > trio.current_time():
                self._to_cut.append(follower)
                continue
            self._touched[follower.key] = None
            home = self._manager.places.homes.get((follower.topic, follower.partition))
            if home is not None:
                groups.setdefault(home, []).append((follower, cut))
        for directory, cuts in groups.items():
            await self._cut(directory, cuts)

    async def _cut(self, directory: "LogDirectory", cuts: Sequence[tuple[Follower, Cut]]) -> None:
        """Raises DiskFailure if the broker cannot do without the directory: its logs are in doubt."""
        pending = [
            (follower, cut) for follower, cut in cuts if cut.is_full or cut.offset < follower.log.log_end
        ]
        logs = {follower: follower.log for follower, _ in cuts}
        for follower, _ in cuts:
            follower.is_busy = True
        try:
            for follower, cut in pending:
                follower.log.lower_recovery_point(cut.offset)
            if pending and not await self._write_checkpoint(directory):
                self._rest(logs)
                return
            self._is_misled = True
            now_ms = self._services.clock.now_ms()
            for follower, cut in cuts:
                if follower.ended is None and follower.cut is cut and follower.log is logs[follower]:
                    try:
                        follower.truncate(now_ms=now_ms)
                    except DiskFailure as failure:
                        if not self._manager.note_failure(directory, failure):
                            raise
                        return
                    except StorageError as damage:
                        self._give_up(follower, damage)
                    self._manager.was_cut(follower.log, cut.offset)
            while pending:
                with trio.CancelScope(shield=True):
                    if await self._write_checkpoint(directory):
                        break
                # Until then a power cut could bring back what is gone, behind what is appended.
                await trio.sleep(RETRY_SECONDS)
        finally:
            for follower, _ in cuts:
                follower.is_busy = False
                self._let_go(follower)
                if follower.cut is not None and self._followers.get(follower.key) is follower:
                    self._to_cut.append(follower)  # this one still, or another
        for follower, cut in cuts:
            if cut.data is not None and self._followers.get(follower.key) is follower:
                await self._take_one(follower, follower.wanted(), cut.data)

    async def _write_checkpoint(self, directory: "LogDirectory") -> bool:
        """Whether it was written, or need not be, because the directory is offline."""
        try:
            await self._services.run_blocking(directory.begin_checkpoint())
        except DiskFailure as failure:
            if self._manager.note_failure(directory, failure):
                return True
            self._services.log.warn_seldom(
                f"logs in {directory.path} cannot be cut yet: {failure}", about=f"cuts in {directory.path}"
            )
            return False
        return True
