"""This node's part in the metadata quorum: whom it believes to lead, since which epoch, and what follows.

It leads, or it follows the leader, or it looks for one.  Which it is may change while the node runs.  Two
things never happen: that it goes back to an older epoch, and that it believes in two leaders of one.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import trio

from broker.metadata.feed import MetadataFeed
from broker.metadata.image import MetadataImage, empty_image
from broker.metadata.replay import MetadataChanges, Replay
from broker.network.call import Address
from broker.raft.batches import KRaftNotes
from broker.raft.log import Loaded, MetadataLog
from broker.raft.replicas import ReplicaKey
from broker.raft.service import RaftService
from broker.raft.snapshotting import Snapshotting
from broker.raft.voters import Voter, VoterEndpoint, VoterSet, find_voter
from protocol.uuids import ZERO_UUID
from storage.node_files import QuorumState

if TYPE_CHECKING:
    from broker.raft.followed_log import FollowedLog
    from broker.raft.snapshots import Snapshot
    from broker.services import Services

NOBODY: Final = -1
"""The leader while none is known, and whom this node voted for if it did not vote."""

EPOCH_MAX: Final = 1 << 30
"""No later epoch is believed: it would be noted for ever, and leave too few for elections to come."""


class Quorum:
    """Leader, epoch and role of this node.  Everything is called in the Trio thread.

    ``raft`` is there while this node leads, and ``followed`` while it does not.
    """

    def __init__(
        self,
        services: "Services",
        log: MetadataLog,
        *,
        feed: MetadataFeed,
        snapshotting: Snapshotting,
        directory_id: bytes,
        endpoints: Sequence[VoterEndpoint],
    ) -> None:
        """``endpoints`` are those of this node's own controller; none if it cannot be one."""
        self.log = log
        self.feed = feed
        self.snapshotting = snapshotting
        self.directory_id = directory_id
        """Of the directory with the metadata log, under which this node may vote."""
        self.endpoints = tuple(endpoints)
        self.incarnation_id = services.identifiers.uuid()
        """Of this run of the controller."""
        self.leader_id = NOBODY
        self.epoch = 0
        self.voted_id = NOBODY
        """Who has this node's vote in ``epoch``."""
        self.voted_directory_id = ZERO_UUID
        self.raft: RaftService | None = None
        self.followed: FollowedLog | None = None
        self.changed = trio.Event()
        """Set when leader or epoch change; another one takes its place then."""
        self._services = services
        self._leader_address: Address | None = None
        self._listeners: list[Callable[[], None]] = []
        self._role_changed = trio.Event()
        self._at_work = trio.CancelScope()
        self._static_voters = _static_voters(services)
        self._caught_up = trio.Event()
        self.patience_ends = math.inf
        """Trio's time at which this node, if it votes, wants to lead itself: nobody else seems to."""
        self.hears_leader = False
        """Whether another node that leads has answered in this epoch, and not fallen silent since."""
        self.has_led = False
        """Whether this node led in this epoch, and does so no longer, or was started anew meanwhile."""
        self.successors: Sequence[ReplicaKey] = ()
        """Who is to lead next, if this node has just resigned of its own will."""
        self._led_epoch = -1
        """The last one in which this node led, and may still have to."""
        self._bootstrap: Snapshot | None = None
        """How the directory was formatted, where this node followed from the start: no record may say it."""
        feed.on_publish(self._note_published)

    # What everybody may ask

    @property
    def is_leader(self) -> bool:
        return self.raft is not None

    @property
    def high_watermark(self) -> int:
        """Everything in the metadata log below it is committed; -1 while that is not known."""
        if self.followed is not None:
            return self.followed.high_watermark
        return self.log.log.high_watermark

    @property
    def kraft_version(self) -> int:
        """By the latest record of the log, committed or not."""
        return self.feed.kraft_version if self.followed is None else self.followed.kraft_version

    @property
    def voters(self) -> VoterSet:
        """By the latest record of the log, or, where no log names any, ``controller.quorum.voters``."""
        if self.raft is not None:
            voters = self.raft.voters
        else:
            voters = () if self.followed is None else self.followed.voters
        return voters or self._static_voters

    @property
    def is_voter(self) -> bool:
        """Whether this node votes."""
        voters, node_id = self.voters, self._services.node_id
        if self.kraft_version == 0:  # then directories do not vote
            return any(voter.id == node_id for voter in voters)
        return find_voter(voters, node_id, self.directory_id) is not None

    @property
    def may_stand(self) -> bool:
        """Whether this node may want to lead.

        One that led when its own removal from the voters was not committed yet may alone have that record.
        Then only it can be elected: it resigns as soon as the others have the record.
        """
        return self.is_voter or self._led_epoch == self.epoch

    @property
    def leader_address(self) -> Address | None:
        """Where another node that leads can be asked, as answers or voters say; None if unknown."""
        if self.leader_id == NOBODY or self.is_leader:
            return None
        return self._leader_address or self.voter_address(self.leader_id)

    def controller_address(self) -> Address | None:
        """Where the active controller listens, by the first listener name of controllers; None if unknown."""
        if not self.is_leader:
            return self.leader_address
        name = self._services.config.controller_listener_names[0]
        return next(
            (Address(host, port) for own, host, port in self.endpoints if own.upper() == name.upper()), None
        )

    def on_leader_change(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` whenever leader or epoch have changed; it may not raise."""
        self._listeners.append(listener)

    async def wait_caught_up(self) -> None:
        """Wait until ``feed`` holds what was committed at some moment since the start."""
        await self._caught_up.wait()

    def find_voter_addresses(self) -> list[Address]:
        """Where voters other than this node listen."""
        found = [self.voter_address(voter.id) for voter in self.voters if voter.id != self._services.node_id]
        return [address for address in found if address is not None]

    def voter_address(self, voter_id: int) -> Address | None:
        """Where a voter listens, by the first listener name of controllers; None if unknown."""
        name = self._services.config.controller_listener_names[0].upper()
        for voter in self.voters:
            if voter.id == voter_id:
                for endpoint in voter.endpoints:
                    if endpoint.name.upper() == name:
                        return Address(endpoint.host, endpoint.port)
        return None

    # Changing the role

    def start_leading(self, raft: RaftService) -> None:
        """This node leads since ``raft`` has begun its epoch."""
        self.raft = raft
        self.followed = None
        if raft.image is raft.latest:
            self._caught_up.set()
        # Nobody else may have its vote in this epoch, not even when it does not lead any more.
        self.voted_id, self.voted_directory_id = self._services.node_id, self.directory_id
        self._note(raft.epoch, self._services.node_id, None)
        self._change_role()

    def start_following(self, loaded: Loaded) -> None:
        """This node follows from the start, and goes on from what its disk says of elections.

        Nothing of ``loaded`` but its snapshot has been applied.
        """
        from broker.raft.followed_log import FollowedLog

        self._bootstrap = loaded.bootstrap
        snapshot = (
            KRaftNotes() if loaded.snapshot is None else self.log.read_notes(loaded.snapshot.end_offset)
        )
        self.followed = FollowedLog(
            self.log,
            loaded.replay,
            next_offset=0 if loaded.snapshot is None else loaded.snapshot.end_offset,
            feed=self.feed,
            snapshotting=self.snapshotting,
            applied=snapshot,
            appended=loaded.notes,
            bootstrap=self._bootstrap,
            now_ms=self._services.clock.now_ms,
        )
        state = self.log.read_quorum_state()
        self.epoch = self.log.last_epoch
        if state is not None and state.leader_epoch >= self.epoch:
            self.epoch = state.leader_epoch
            self.voted_id, self.voted_directory_id = state.voted_id, state.voted_directory_id
            if state.leader_id != self._services.node_id:
                self.leader_id = state.leader_id
            else:  # it has lost what a leader knows, and nobody else has its vote
                self.has_led = True
                self.voted_id, self.voted_directory_id = self._services.node_id, self.directory_id
                self._led_epoch = self.epoch
        self._change_role()

    def new_leader(self, loaded: Loaded) -> RaftService:
        """What leads once its epoch has begun; ``loaded`` holds the whole log."""
        return RaftService(
            self.log,
            loaded,
            node_id=self._services.node_id,
            directory_id=self.directory_id,
            now_ms=self._services.clock.now_ms,
            snapshotting=self.snapshotting,
            feed=self.feed,
        )

    def become_follower(self, epoch: int, leader_id: int, address: Address | None = None) -> bool:
        """Another node leads since ``epoch``; return whether that can be, and is so from now on.

        ``address`` is where it can be asked, where somebody has said so.  Raises DiskFailure.
        """
        if not self._may_follow(epoch, leader_id):
            return False
        if epoch == self.epoch and leader_id in (NOBODY, self.leader_id):
            if leader_id != NOBODY and address is not None:
                self._leader_address = address
            return True
        self.resign()
        voted = (NOBODY, ZERO_UUID) if epoch > self.epoch else (self.voted_id, self.voted_directory_id)
        self._remember(epoch, leader_id, *voted)
        self._note(epoch, leader_id, address)
        return True

    def become_unattached(self, epoch: int) -> bool:
        """An epoch has begun of which nobody has said who leads it; return whether it is news.

        Raises DiskFailure.
        """
        return epoch > self.epoch and self.become_follower(epoch, NOBODY)

    def vote(self, epoch: int, candidate_id: int, candidate_directory_id: bytes) -> None:
        """Note on disk, before anybody hears of it, that ``candidate_id`` has this node's vote in ``epoch``.

        Raises DiskFailure.
        """
        assert epoch >= self.epoch, "an epoch that is over"
        self.resign()
        self._remember(epoch, NOBODY, candidate_id, candidate_directory_id)
        self._note(epoch, NOBODY, None)

    def resign(self) -> None:
        """Lead no longer, in this epoch: what is not committed may be lost.  Others say who leads next."""
        raft, self.raft = self.raft, None
        if raft is None:
            return
        from broker.raft.followed_log import FollowedLog  # who never resigns does not need it

        self._services.controller.deactivate()
        if raft.replicas.leader_votes or not raft.are_voters_committed:
            self._led_epoch = self.epoch
        known = KRaftNotes(kraft_version=raft.kraft_version, voters=raft.voters)
        replay, next_offset = self._replay_published()
        self.followed = FollowedLog(
            self.log,
            replay,
            next_offset=next_offset,
            feed=self.feed,
            snapshotting=self.snapshotting,
            applied=known.completed_by(self.log.read_notes(next_offset)),
            appended=known,
            bootstrap=self._bootstrap,
            high_watermark=self.log.log.high_watermark,
            now_ms=self._services.clock.now_ms,
        )
        self.has_led = True
        self._note(self.epoch, NOBODY, None)
        self._change_role()
        raft.end()

    def _replay_published(self) -> tuple[Replay, int]:
        """What goes on from the published image, or from a snapshot if the log begins behind that; and where.

        It does if nothing was published since the start, for example.
        """
        image, snapshot = self.feed.image, self.log.newest_snapshot
        if snapshot is None or image.offset + 1 >= self.log.log.log_start:
            return Replay(image), image.offset + 1
        replay = Replay(empty_image(image.cluster_id))
        self.log.apply_snapshot(replay, snapshot)
        return replay, snapshot.end_offset

    def hand_over(self) -> None:
        """Resign and tell the other voters, so that soon one leads: who has most of the log, at best."""
        if self.raft is not None:
            self.successors = self.raft.replicas.by_progress()
            self.resign()

    async def leave(self) -> None:
        """Let another voter lead, if this node does and there is one, while it can still have its vote."""
        raft = self.raft
        if raft is None or raft.replicas.is_alone:
            return
        self.hand_over()
        timeout_ms = self._services.config.get("controller.quorum.election.timeout.ms")
        with trio.move_on_after(timeout_ms / 1000):
            while self.leader_id == NOBODY:
                await self.changed.wait()

    def note_answer(self) -> None:
        """The leader has answered as one."""
        self.hears_leader = True
        self._be_patient()

    def hurry(self, seconds: float) -> None:
        """The leader has resigned: so long this node waits for another one, if it votes."""
        self.hears_leader = False
        self.postpone(seconds)
        self._tell_change()

    def lose_patience(self) -> None:
        """The leader, if there is one, has not answered for too long."""
        self.hears_leader = False

    def postpone(self, seconds: float) -> None:
        """Want to lead after so long, and not before."""
        self.patience_ends = trio.current_time() + seconds

    def _note_published(self, _image: MetadataImage, _changes: MetadataChanges) -> None:
        """A leader publishes everything that it found in its log at once, when it is committed."""
        if self.is_leader:
            self._caught_up.set()

    def _be_patient(self) -> None:
        if self.is_leader:
            self.patience_ends = math.inf
            return
        config = self._services.config
        if self.leader_id != NOBODY:
            wait_ms: float = config.get("controller.quorum.fetch.timeout.ms")
        else:  # at random, so that two nodes do not want to lead at the same time for ever
            timeout_ms = config.get("controller.quorum.election.timeout.ms")
            wait_ms = timeout_ms * (1 + self._services.identifiers.random.random())
        self.patience_ends = trio.current_time() + wait_ms / 1000

    def complete_log(self) -> Loaded:
        """All of the log, committed or not: what a new leader goes on from.

        Raises CorruptFile or DiskFailure.
        """
        assert self.followed is not None, "this node leads already"
        return self.followed.complete()

    def _may_follow(self, epoch: int, leader_id: int) -> bool:
        if epoch != self.epoch:
            return self.epoch < epoch <= EPOCH_MAX
        if leader_id == self._services.node_id:
            return self.is_leader
        return leader_id in (NOBODY, self.leader_id) or self.leader_id == NOBODY

    def _remember(self, epoch: int, leader_id: int, voted_id: int, voted_directory_id: bytes) -> None:
        """Note it on disk first: if that fails, this node is still in its old epoch, with its vote there."""
        is_static = self.kraft_version == 0
        self.log.write_quorum_state(
            QuorumState(
                leader_id=leader_id,
                leader_epoch=epoch,
                voted_id=voted_id,
                voted_directory_id=voted_directory_id,
                voters=tuple(voter.id for voter in self.voters) if is_static else (),
                data_version=0 if is_static else 1,
            )
        )
        self.voted_id, self.voted_directory_id = voted_id, voted_directory_id

    def _note(self, epoch: int, leader_id: int, address: Address | None) -> None:
        assert epoch >= self.epoch, "an epoch that is over"
        if epoch > self.epoch:
            self.has_led = False
        self.epoch = epoch
        self.leader_id = leader_id
        self._leader_address = address
        self.hears_leader = False
        self._be_patient()
        self._tell_change()
        for listener in self._listeners:
            listener()

    def _tell_change(self) -> None:
        changed, self.changed = self.changed, trio.Event()
        changed.set()

    def _change_role(self) -> None:
        self._at_work.cancel()
        role_changed, self._role_changed = self._role_changed, trio.Event()
        role_changed.set()

    # At work

    async def run(self) -> None:
        """Do what a leader does beside committing, or else follow whoever leads, for ever.

        Raises CorruptFile where what is committed cannot be applied, and DiskFailure.
        """
        while True:
            role_changed = self._role_changed
            with trio.CancelScope() as self._at_work:
                if self.raft is not None:
                    await self._lead(self.raft)
                elif self.followed is not None:
                    await self._follow(self.followed)
            await role_changed.wait()

    async def _lead(self, raft: RaftService) -> None:
        await raft.has_company.wait()
        from broker.raft.duties import LeaderDuties  # a node that is alone does not need it

        await LeaderDuties(self._services, self, raft).run()

    async def _follow(self, followed: "FollowedLog") -> None:
        from broker.raft.campaign import Campaign
        from broker.raft.observer import Observer
        from broker.raft.registration import ControllerRegistration

        if self.patience_ends == math.inf:
            self._be_patient()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Observer(self._services, self, followed).run, self._caught_up.set)
            if "controller" in self._services.config.get("process.roles"):
                nursery.start_soon(Campaign(self._services, self).run)
                nursery.start_soon(ControllerRegistration(self._services, self).run)


def _static_voters(services: "Services") -> VoterSet:
    """``controller.quorum.voters``, as the log would name them: under the first controller listener."""
    name = services.config.controller_listener_names[0]
    voters = []
    for text in services.config.get("controller.quorum.voters"):
        voter_id, _, address = text.partition("@")
        host, port = read_host_and_port(address)
        voters.append(Voter(int(voter_id), ZERO_UUID, (VoterEndpoint(name, host, port),)))
    return tuple(voters)


def read_host_and_port(text: str) -> Address:
    """``host:port``, where an IPv6 address stands in brackets."""
    host, _, port = text.strip().rpartition(":")
    return Address(host.strip("[]"), int(port))
