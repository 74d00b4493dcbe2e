"""Voters that come and go (KIP-853), as far as a quorum can change in which only one node votes.

A voter must have the whole log before it may vote.  Nobody can copy this log yet, so that the answer to one
that asks to be added is that it lags behind; and who votes alone cannot go.
"""

import struct
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

import trio

from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError, KafkaError
from protocol.uuids import uuid_to_text

if TYPE_CHECKING:
    from broker.raft.voters import VoterSet
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
    """Decides about voters; at most one candidate is looked at.

    Its methods raise the ``KafkaError`` with which a request is refused at once.
    """

    def __init__(self, services: "Services", nursery: trio.Nursery) -> None:
        self._services = services
        self._nursery = nursery
        self._is_adding = False
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

    def add(self, candidate: Candidate) -> Waiting[KafkaError]:
        """Ask the candidate which kraft.version it supports; the answer is why it cannot vote."""
        host, port = candidate.endpoints[self.listener]
        voters = self._voters("adding")
        if any(voter.id == candidate.id for voter in voters):
            raise KafkaError(
                ErrorCode.DUPLICATE_VOTER,
                f"The voter id for {candidate} is already part of the set of voters {all_shown(voters)}.",
            )
        if candidate.id == self._failed_id and trio.current_time() < self._next_try:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, f"New voter {candidate} is not ready to receive requests"
            )
        self._is_adding = True
        waiting: Waiting[KafkaError] = Waiting(droppable=True)
        self._nursery.start_soon(self._find_out, candidate, host, port, waiting)
        return waiting

    def remove(self, voter_id: int, directory_id: bytes) -> NoReturn:
        """Say why this voter stays: it is no voter, or the only one."""
        voters = self._voters("removing")
        raise KafkaError(
            ErrorCode.VOTER_NOT_FOUND,
            f"Cannot remove voter {shown(voter_id, directory_id)} from the set of voters {all_shown(voters)}",
        )

    def _voters(self, doing: str) -> "VoterSet":
        """Who votes, if that can be changed now."""
        if self._is_adding:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                "Request timed out waiting for leader to handle previous voter change request",
            )
        raft = self._services.controller.raft
        if raft.kraft_version < 1:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Cluster doesn't support {doing} voter because the kraft.version feature is "
                f"{raft.kraft_version}",
            )
        return raft.voters

    async def _find_out(
        self, candidate: Candidate, host: str, port: int, waiting: Waiting[KafkaError]
    ) -> None:
        config = self._services.config
        code, message = ErrorCode.REQUEST_TIMED_OUT, "The request timed out."
        try:
            with trio.move_on_after(config.get("controller.quorum.request.timeout.ms") / 1000):
                code, message = self._judge(candidate, await ask_kraft_versions(host, port))
        except (OSError, ValueError, DecodeError) as error:
            self._services.log.warn_seldom(f"node {candidate.id}, which is to vote, cannot be asked: {error}")
            message = _returned(ErrorCode.BROKER_NOT_AVAILABLE)
            self._failed_id = candidate.id
            self._next_try = trio.current_time() + config.get("controller.quorum.retry.backoff.ms") / 1000
        finally:
            self._is_adding = False
        waiting.answer(KafkaError(code, message))

    def _judge(self, candidate: Candidate, answer: "KRaftVersions") -> tuple[ErrorCode, str]:
        if answer.error:
            return ErrorCode.REQUEST_TIMED_OUT, _returned(answer.error)
        level = self._services.controller.raft.kraft_version
        low, high = answer.range or (0, 0)
        if not low <= level <= high:
            told = f"(min: {low}, max: {high}" if answer.range else "(min: 0, max: 0)"
            return ErrorCode.INVALID_REQUEST, (
                f"Aborted add voter operation for {candidate} since the kraft.version range {told} "
                f"doesn't support the finalized version {level}"
            )
        return (
            ErrorCode.REQUEST_TIMED_OUT,
            f"Aborted add voter operation for {candidate} since it is lagging behind",
        )


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


def all_shown(voters: "Sequence[tuple[int, bytes]] | VoterSet") -> str:
    return f"[{', '.join(shown(voter[0], voter[1]) for voter in voters)}]"


def _returned(code: int) -> str:
    name = ErrorCode(code).name if code in ErrorCode.__members__.values() else "UNKNOWN_SERVER_ERROR"
    return f"Aborted add voter operation for since API_VERSIONS returned an error {name}"
