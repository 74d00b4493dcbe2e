"""Candidates are asked, and turned away: what needs more than the oracle's one broker."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from broker.controller.start import take_lead
from broker.raft.replicas import ReplicaKey
from broker.raft.voter_changes import Candidate, VoterChanges, open_voter_changes
from protocol.error_codes import ErrorCode
from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from protocol.messages.api_versions import ApiVersionsResponse, SupportedFeatureKey
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from tests.broker.controller.node import ControllerNode

DIRECTORY = b"\x11" * 16
SHOWN = "ReplicaKey(id=2, directoryId=EREREREREREREREREREREQ)"

Serve = Callable[[trio.SocketStream], Any]


@asynccontextmanager
async def started(*, kraft_version: int = 1) -> AsyncIterator[ControllerNode]:
    node = ControllerNode()
    if not kraft_version:
        node.format = node.format._replace(controller_endpoints=())
    node.start()
    async with open_voter_changes(node.services) as node.services.voter_changes:
        yield node


@asynccontextmanager
async def peer(serve: Serve) -> AsyncIterator[int]:
    """The port where a candidate listens that does this with each connection."""
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        yield listener.socket.getsockname()[1]
        nursery.cancel_scope.cancel()


def answering(body: bytes, correlation_id: int = 1) -> Serve:
    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some(4096)
        frame = correlation_id.to_bytes(4, "big") + body
        await stream.send_all(len(frame).to_bytes(4, "big") + frame)

    return serve


def says(*features: tuple[str, int, int], error: int = 0) -> Serve:
    response = ApiVersionsResponse(
        error_code=error,
        supported_features=[
            SupportedFeatureKey(name=name, min_version=low, max_version=high) for name, low, high in features
        ],
    )
    return answering(response.encode(4))


async def add(
    node: ControllerNode, port: int, voter_id: int = 2, host: str = "127.0.0.1"
) -> tuple[ErrorCode, str]:
    request = AddRaftVoterRequest(
        cluster_id=None,
        voter_id=voter_id,
        voter_directory_id=DIRECTORY,
        listeners=[Listener(name="CONTROLLER", host=host, port=port)],
    )
    answer = await node.ask(request, AddRaftVoterResponse, 1)
    return ErrorCode(answer.error_code), answer.error_message


async def remove(node: ControllerNode) -> tuple[ErrorCode, str]:
    request = RemoveRaftVoterRequest(cluster_id=None, voter_id=2, voter_directory_id=DIRECTORY)
    answer = await node.ask(request, RemoveRaftVoterResponse, 0)
    return ErrorCode(answer.error_code), answer.error_message


def unsupported(versions: str) -> str:
    return (
        f"Aborted add voter operation for {SHOWN} since the kraft.version range {versions} doesn't support "
        "the finalized version 1"
    )


@pytest.mark.parametrize(
    ("serve", "code", "text"),
    [
        (
            says(("kraft.version", 0, 1)),
            ErrorCode.REQUEST_TIMED_OUT,
            f"Aborted add voter operation for {SHOWN} since it is lagging behind",
        ),
        (
            says(("kraft.version", 2, 3)),
            ErrorCode.INVALID_REQUEST,
            unsupported("(min: 2, max: 3"),
        ),
        (
            says(("metadata.version", 1, 3)),
            ErrorCode.INVALID_REQUEST,
            unsupported("(min: 0, max: 0)"),
        ),
        (
            answering(bytes.fromhex("0023 00000000")),
            ErrorCode.INVALID_REQUEST,
            unsupported("(min: 0, max: 0)"),
        ),
        (
            says(error=42),
            ErrorCode.REQUEST_TIMED_OUT,
            "Aborted add voter operation for since API_VERSIONS returned an error INVALID_REQUEST",
        ),
    ],
)
async def test_what_a_candidate_says_of_itself(serve: Serve, code: ErrorCode, text: str) -> None:
    async with started() as node, peer(serve) as port:
        assert await add(node, port) == (code, text)


@pytest.mark.parametrize("host", ["a" * 300, "a\0b", "..", ""])
async def test_a_candidate_whose_host_can_be_none_is_not_there(host: str) -> None:
    async with started() as node:
        assert await add(node, 9093, host=host) == (
            ErrorCode.REQUEST_TIMED_OUT,
            "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE",
        )


@pytest.mark.parametrize("answer", [b"", bytes.fromhex("7fffffff"), bytes.fromhex("0000000a 00")])
async def test_a_candidate_that_makes_no_sense_is_not_there(answer: bytes) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        await stream.send_all(answer)

    async with started() as node, peer(serve) as port:
        not_there = (
            ErrorCode.REQUEST_TIMED_OUT,
            ("Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE"),
        )
        assert await add(node, port) == not_there
        code, text = await add(node, port)
        assert (code, text) == (
            ErrorCode.REQUEST_TIMED_OUT,
            f"New voter {SHOWN} is not ready to receive requests",
        )
        assert await add(node, port, voter_id=3) == not_there


async def test_one_candidate_at_a_time_and_not_for_ever(autojump_clock: trio.testing.MockClock) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async with started() as node, peer(serve) as port, trio.open_nursery() as nursery:
        autojump_clock.autojump_threshold = 0.05
        answers: list[tuple[ErrorCode, str]] = []
        answered = trio.Event()

        async def ask() -> None:
            answers.append(await add(node, port))
            answered.set()

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        busy = (
            ErrorCode.REQUEST_TIMED_OUT,
            ("Request timed out waiting for leader to handle previous voter change request"),
        )
        assert await add(node, port, voter_id=3) == busy
        assert await remove(node) == busy
        began = trio.current_time()
        await answered.wait()
        assert answers == [(ErrorCode.REQUEST_TIMED_OUT, "The request timed out.")]
        assert trio.current_time() - began <= 2.5
        assert (await remove(node))[0] == ErrorCode.VOTER_NOT_FOUND


async def test_one_that_waits_for_the_disk_is_not_undone_by_the_next(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The disk was so slow that nobody waits for the first any more; then both are written."""
    async with started() as node, peer(says(("kraft.version", 0, 1))) as port:
        autojump_clock.autojump_threshold = 0.05
        for voter_id in (2, 3):
            node.raft.note_fetch(ReplicaKey(voter_id, DIRECTORY), node.raft.log.end_offset)
            answer = await add(node, port, voter_id)
            assert answer == (ErrorCode.REQUEST_TIMED_OUT, "The request timed out.")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(node.controller.run)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert [voter.id for voter in node.raft.voters] == [1, 2]


async def test_one_that_waits_for_the_disk_is_not_written_by_a_later_leader(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with started() as node, peer(says(("kraft.version", 0, 1))) as port:
        autojump_clock.autojump_threshold = 0.05
        node.raft.note_fetch(ReplicaKey(2, DIRECTORY), node.raft.log.end_offset)
        await add(node, port)
        node.services.quorum.resign()
        take_lead(node.services)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(node.controller.run)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        epochs = [batch.partition_leader_epoch for batch in node.raft.log.batches(0)]
        assert epochs == sorted(epochs)
        assert [voter.id for voter in node.raft.voters] == [1]


async def test_a_leader_that_resigns_at_that_moment_says_so() -> None:
    async with started() as node, peer(says(("kraft.version", 0, 1))) as port:
        node.raft.note_fetch(ReplicaKey(2, DIRECTORY), node.raft.log.end_offset)
        candidate = Candidate(2, DIRECTORY, {"CONTROLLER": ("127.0.0.1", port)})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(node.controller.run)
            answer = node.services.voter_changes.add(candidate, waits_for_commit=True)
            node.services.quorum.resign()
            error = await answer.wait()
            assert error is not None
            assert error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            nursery.cancel_scope.cancel()


async def test_before_kraft_version_1_voters_are_a_matter_of_settings() -> None:
    async with started(kraft_version=0) as node:
        start = "Cluster doesn't support"
        assert await add(node, 1) == (
            ErrorCode.UNSUPPORTED_VERSION,
            f"{start} adding voter because the kraft.version feature is 0",
        )
        assert await remove(node) == (
            ErrorCode.UNSUPPORTED_VERSION,
            f"{start} removing voter because the kraft.version feature is 0",
        )


async def test_a_broker_that_stops_does_not_wait_for_a_candidate() -> None:
    async def serve(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async with peer(serve) as port, started() as node:
        changes: VoterChanges = node.services.voter_changes
        assert changes.listener == "CONTROLLER"
        with trio.move_on_after(0):
            await add(node, port)
