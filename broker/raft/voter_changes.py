"""Voters that come and go (KIP-853), one at a time: how the controller is handed over.

A voter must have the whole log before it may vote, and who votes alone cannot go.  A voter set counts from
the moment at which it stands in the log, and is committed by a majority of its own.
"""

import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from broker.controller.decision import Decision
from broker.network.waiting import Waiting
from broker.raft.replicas import ReplicaKey
from broker.raft.voters import Voter, VoterEndpoint, VoterSet, find_voter, replace_voter
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError, KafkaError
from protocol.uuids import uuid_to_text

if TYPE_CHECKING:
    from broker.metadata.image import MetadataImage
    from broker.raft.service import RaftService
    from broker.services import Services

FIRST_WITH_LEVELS_FROM_0: Final = 4
"""The version of ApiVersions in which nodes name features whose lowest level is 0, as kraft.version's is."""

RECEIVE_BYTES: Final = 1 << 16

SIZE_MAX: Final = 1 << 20
"""No node has so many APIs and features that its answer is longer."""

CORRELATION_ID: Final = 1

_SIZE = struct.Struct(">i")


class Candidate(NamedTuple):
    """A node that is to vote, and where its controller listens: names of listeners in capitals."""

    id: int
    directory_id: bytes
    endpoints: Mapping[str, tuple[str, int]]

    def __str__(self) -> str:
        return shown(self.id, self.directory_id)


class VoterChanges:
    """Decides about voters; at most one change is under way.

    Its methods raise the ``KafkaError`` with which a request is refused at once; what they return is answered
    with one, or with None when the new voter set is committed.
    """

    def __init__(self, services: "Services", nursery: trio.Nursery) -> None:
        self._services = services
        self._nursery = nursery
        self._is_changing = False
        self._failed_id = -1
        self._next_try = 0.0
        """Trio's time: not before then is ``_failed_id`` asked again."""

    @property
    def listener(self) -> str:
        """The one by which voters speak to each other."""
        return self._services.config.controller_listener_names[0].upper()

    def check_cluster(self, cluster_id: str | None) -> None:
        """Whether a request is for this cluster; it need not say for which."""
        known = self._services.cluster_id
        if cluster_id is not None and cluster_id != known:
            raise KafkaError(
                ErrorCode.INCONSISTENT_CLUSTER_ID,
                f'The given id "{cluster_id}" doesn\'t match the cluster id "{known}"',
            )

    def check_leader(self) -> None:
        """Whether this node leads: only then can it say more."""
        if not self._services.quorum.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def add(self, candidate: Candidate, *, waits_for_commit: bool) -> Waiting[KafkaError | None]:
        """Let a candidate vote that supports this kraft.version and has the log.

        If not ``waits_for_commit``, the answer comes when it votes.
        """
        host, port = candidate.endpoints[self.listener]
        raft, voters = self._services.controller.raft, self._voters("adding")
        if any(voter.id == candidate.id for voter in voters):
            raise KafkaError(
                ErrorCode.DUPLICATE_VOTER,
                f"The voter id for {candidate} is already part of the set of voters {all_shown(voters)}.",
            )
        if candidate.id == self._failed_id and trio.current_time() < self._next_try:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, f"New voter {candidate} is not ready to receive requests"
            )

        async def find_voters() -> VoterSet:
            kraft_versions = await self._find_out(raft, candidate, host, port)
            endpoints = [VoterEndpoint(name, *address) for name, address in candidate.endpoints.items()]
            voter = Voter(candidate.id, candidate.directory_id, tuple(endpoints), kraft_versions)
            return (*voters, voter)

        return self._begin(voters, find_voters, waits_for_commit=waits_for_commit)

    def remove(self, voter_id: int, directory_id: bytes) -> Waiting[KafkaError | None]:
        """Let a voter vote no longer.  If it is this node, it resigns when that is committed."""
        voters = self._voters("removing")
        rest = tuple(voter for voter in voters if (voter.id, voter.directory_id) != (voter_id, directory_id))
        if not rest or len(rest) == len(voters):
            raise KafkaError(
                ErrorCode.VOTER_NOT_FOUND,
                f"Cannot remove voter {shown(voter_id, directory_id)} from the set of voters "
                f"{all_shown(voters)}",
            )

        async def find_voters() -> VoterSet:
            return rest

        return self._begin(voters, find_voters, waits_for_commit=True)

    def update(self, changed: Voter) -> None:
        """Note where a voter listens now, and which kraft.versions it supports."""
        voters = self._voters("updating")
        level = self._services.controller.raft.kraft_version
        low, high = changed.kraft_versions
        if not low <= level <= high:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if find_voter(voters, changed.id, changed.directory_id) is None:
            raise KafkaError(ErrorCode.VOTER_NOT_FOUND)
        raft = self._services.controller.raft
        raft.note_sign(ReplicaKey(changed.id, changed.directory_id))

        def command(_: "MetadataImage") -> Decision[None]:
            self._check_unchanged(raft, voters)
            raft.change_voters(replace_voter(voters, changed))
            return Decision((), None)

        self._services.controller.submit(command, lambda _: None)

    def _voters(self, doing: str) -> VoterSet:
        """Who votes, if that can be changed now."""
        if self._is_changing:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                "Request timed out waiting for leader to handle previous voter change request",
            )
        raft = self._services.controller.raft
        if raft.high_watermark < 0:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                "Request timed out waiting for leader to establish HWM and fence previous voter changes",
            )
        if raft.kraft_version < 1:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Cluster doesn't support {doing} voter because the kraft.version feature is "
                f"{raft.kraft_version}",
            )
        if not raft.are_voters_committed:
            raise _uncommitted(raft)
        return raft.voters

    def _check_unchanged(self, raft: "RaftService", voters: VoterSet) -> None:
        """Whether ``raft`` leads and ``voters`` vote, as when it was decided to change them: now it is done.

        On a slow disk another change may have come first that nobody waits for any more.
        """
        if self._services.controller.raft is not raft:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        if raft.voters is not voters:
            raise _uncommitted(raft)

    def _begin(
        self, voters: VoterSet, find_voters: Callable[[], Awaitable[VoterSet]], *, waits_for_commit: bool
    ) -> Waiting[KafkaError | None]:
        self._is_changing = True
        waiting: Waiting[KafkaError | None] = Waiting(droppable=True)
        raft = self._services.controller.raft
        self._nursery.start_soon(self._change, raft, voters, find_voters, waiting, waits_for_commit)
        return waiting

    async def _change(
        self,
        raft: "RaftService",
        before: VoterSet,
        find_voters: Callable[[], Awaitable[VoterSet]],
        waiting: Waiting[KafkaError | None],
        waits_for_commit: bool,
    ) -> None:
        """Change the voters, and give up waiting, but not the change, when it takes too long."""
        outcome: KafkaError | None = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "The request timed out.")
        written: Waiting[KafkaError | None] | None = None
        timeout_ms = self._services.config.get("controller.quorum.request.timeout.ms")
        try:
            with trio.move_on_after(timeout_ms / 1000):
                voters = await find_voters()
                written = self._write(raft, before, voters, None if waits_for_commit else waiting)
                outcome = await written.wait()
        except KafkaError as error:
            outcome = error
        finally:
            self._is_changing = False
        waiting.answer(outcome)
        if written is None or await written.wait() is not None:
            return
        if not raft.replicas.leader_votes and self._services.quorum.raft is raft:
            self._services.log.info("this node votes no longer about who is the controller, and resigns")
            self._services.quorum.hand_over()

    def _write(
        self,
        raft: "RaftService",
        before: VoterSet,
        voters: VoterSet,
        at_once: Waiting[KafkaError | None] | None,
    ) -> Waiting[KafkaError | None]:
        """Append a voter set, which answers ``at_once``; what is returned is answered by its commit."""
        committed: Waiting[KafkaError | None] = Waiting()

        def command(_: "MetadataImage") -> Decision[None]:
            self._check_unchanged(raft, before)
            raft.change_voters(voters)
            self._services.log.info(f"voters about the controller are from now on {_names(voters)}")
            if at_once is not None:
                at_once.answer(None)
            return Decision((), None)

        def done(outcome: KafkaError | None) -> None:
            if outcome is not None and outcome.code == ErrorCode.NOT_CONTROLLER:
                outcome = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            committed.answer(outcome)

        self._services.controller.submit(command, done)
        return committed

    async def _find_out(
        self, raft: "RaftService", candidate: Candidate, host: str, port: int
    ) -> tuple[int, int]:
        """The kraft.versions that the candidate supports.  Raises KafkaError if it cannot vote."""
        config = self._services.config
        try:
            answer = await ask_kraft_versions(host, port)
        except (OSError, ValueError, DecodeError) as error:
            self._services.log.warn_seldom(f"node {candidate.id}, which is to vote, cannot be asked: {error}")
            self._failed_id = candidate.id
            self._next_try = trio.current_time() + config.get("controller.quorum.retry.backoff.ms") / 1000
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, _returned(ErrorCode.BROKER_NOT_AVAILABLE)
            ) from error
        if answer.error:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, _returned(answer.error))
        level = raft.kraft_version
        low, high = answer.range or (0, 0)
        if not low <= level <= high:
            told = f"(min: {low}, max: {high}" if answer.range else "(min: 0, max: 0)"
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Aborted add voter operation for {candidate} since the kraft.version range {told} "
                f"doesn't support the finalized version {level}",
            )
        if not raft.replicas.is_caught_up(ReplicaKey(candidate.id, candidate.directory_id), raft.now_ms()):
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"Aborted add voter operation for {candidate} since it is lagging behind",
            )
        return low, high


@asynccontextmanager
async def open_voter_changes(services: "Services") -> AsyncIterator[VoterChanges]:
    """While the block lasts, candidates can be asked."""
    async with trio.open_nursery() as nursery:
        yield VoterChanges(services, nursery)
        nursery.cancel_scope.cancel()


class KRaftVersions(NamedTuple):
    """What a node says of itself: the lowest and highest kraft.version that it supports, or an error."""

    range: tuple[int, int] | None
    error: int


async def ask_kraft_versions(host: str, port: int) -> KRaftVersions:
    """Ask the node that listens there.  Raises OSError or DecodeError; ValueError if that can be no host."""
    from protocol.headers import RequestHeader
    from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

    version = FIRST_WITH_LEVELS_FROM_0
    header = RequestHeader(
        request_api_key=ApiVersionsRequest.api_key,
        request_api_version=version,
        correlation_id=CORRELATION_ID,
        client_id=None,
    )
    body = ApiVersionsRequest(client_software_name="ottla", client_software_version="1").encode(version)
    frame = header.encode(2) + body
    async with await trio.open_tcp_stream(host, port) as stream:
        try:
            await stream.send_all(_SIZE.pack(len(frame)) + frame)
            received = await _receive_frame(stream)
        except trio.BrokenResourceError as broken:
            raise ConnectionError("the connection broke") from broken
    error = int.from_bytes(received[4:6], "big", signed=True)
    if error == ErrorCode.UNSUPPORTED_VERSION:  # told in version 0: the node is too old to say more
        return KRaftVersions(None, ErrorCode.NONE)
    answer, _ = ApiVersionsResponse.decode_from(received, 4, version)
    for feature in answer.supported_features:
        if feature.name == "kraft.version":
            return KRaftVersions((feature.min_version, feature.max_version), answer.error_code)
    return KRaftVersions(None, answer.error_code)


async def _receive_frame(stream: trio.SocketStream) -> bytes:
    received = bytearray()
    while len(received) < _SIZE.size or len(received) < _SIZE.size + _size_of(received):
        part = await stream.receive_some(RECEIVE_BYTES)
        if not part:
            raise ConnectionError("the connection was closed")
        received += part
    return bytes(received[_SIZE.size :])


def _size_of(received: bytearray) -> int:
    (size,) = _SIZE.unpack_from(received)
    if not 6 <= size <= SIZE_MAX:
        raise DecodeError(f"an answer of {size} bytes")
    return int(size)


def shown(voter_id: int, directory_id: bytes) -> str:
    """A voter as Kafka writes it."""
    return f"ReplicaKey(id={voter_id}, directoryId={uuid_to_text(directory_id)})"


def all_shown(voters: Sequence[tuple[int, bytes]] | VoterSet) -> str:
    return f"[{', '.join(shown(voter[0], voter[1]) for voter in voters)}]"


def _uncommitted(raft: "RaftService") -> KafkaError:
    """Why voters cannot be changed while the latest change of them is under way."""
    return KafkaError(
        ErrorCode.REQUEST_TIMED_OUT,
        "Request timed out waiting for voters to commit the latest voter change at "
        f"Optional[{raft.voters_offset}] with HWM {raft.high_watermark}",
    )


def _names(voters: VoterSet) -> str:
    return " and ".join(f"node {voter.id}" for voter in voters)


def _returned(code: int) -> str:
    name = ErrorCode(code).name if code in ErrorCode.__members__.values() else "UNKNOWN_SERVER_ERROR"
    return f"Aborted add voter operation for since API_VERSIONS returned an error {name}"
