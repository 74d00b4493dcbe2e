"""The steps of handing over, against a cluster that answers by script."""

import os
import socket
from collections.abc import Callable
from typing import Any

import pytest
import trio

from broker.network.call import Address
from broker.network.node_client import NodeUnreachable
from ottla.handover import Handover, HandoverRefused
from ottla.handover_command import _say, hand_over
from protocol.error_codes import ErrorCode
from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from protocol.uuids import ZERO_UUID

BROKER = Address("127.0.0.1", 9092)

NOW_MS = 1_700_000_000_000
OLD_ID = bytes(range(16))


def controller(node_id: int) -> Address:
    return Address("127.0.0.1", 9100 + node_id)


class Cluster:
    """Node 1 leads and is the only broker; the others copy.  The highest voter leads when the leader goes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.voters = [1]
        self.leader = 1
        self.copies = [1, 2]
        self.brokers = {1: BROKER}
        self.controllers: list[int] | None = None
        """Those that have registered; None: all that copy."""
        self.list_of_broker = f"{controller(1)},{controller(2)}"
        self.last_fetch_ms = {1: NOW_MS}
        """Of copies that are silent, or the leader; the others have asked just now."""
        self.gone: list[ReplicaState] = []
        """Copies that are no more, of which the leader still knows."""
        self.directory_ids: list[bytes] = []
        """Of who was added."""
        self.refusals: list[ErrorCode] = []
        self.done: list[tuple[str, int]] = []
        monkeypatch.setattr("ottla.handover.NodeClient", self._client)

    def _client(
        self, transport: object, resolve: Callable[[], Address], *, client_id: str
    ) -> "Cluster._Client":
        return self._Client(self, resolve())

    class _Client:
        def __init__(self, cluster: "Cluster", address: Address) -> None:
            self._cluster = cluster
            self._address = address

        async def ask(self, request: Any, *, timeout_seconds: float) -> Any:
            await trio.lowlevel.checkpoint()
            return self._cluster.answer(self._address, request)

        def close(self) -> None:
            """Nothing is open."""

    def answer(self, address: Address, request: Any) -> Any:
        if isinstance(request, DescribeQuorumRequest):
            return self._quorum()
        if isinstance(request, DescribeClusterRequest):
            registered = self.copies if self.controllers is None else self.controllers
            nodes = self.brokers if address == BROKER else {each: controller(each) for each in registered}
            return DescribeClusterResponse(
                brokers=[
                    DescribeClusterBroker(broker_id=each, host=at.host, port=at.port)
                    for each, at in nodes.items()
                ]
            )
        if isinstance(request, AddRaftVoterRequest | RemoveRaftVoterRequest):
            return self._change(address, request)
        if not self.list_of_broker:
            raise NodeUnreachable("nobody is there")
        config = DescribeConfigsResourceResult(
            name="controller.quorum.bootstrap.servers", value=self.list_of_broker
        )
        return DescribeConfigsResponse(results=[DescribeConfigsResult(configs=[config])])

    def _change(self, address: Address, request: AddRaftVoterRequest | RemoveRaftVoterRequest) -> Any:
        assert address == controller(self.leader)
        is_new = isinstance(request, AddRaftVoterRequest)
        answer = AddRaftVoterResponse if is_new else RemoveRaftVoterResponse
        if self.refusals:
            return answer(error_code=self.refusals.pop(0), error_message="for a reason")
        self.done.append(("add" if is_new else "remove", request.voter_id))
        if is_new:
            self.voters.append(request.voter_id)
            self.directory_ids.append(request.voter_directory_id)
        else:
            self.voters.remove(request.voter_id)
            self.leader = self.leader if self.leader in self.voters else max(self.voters)
        return answer()

    def _quorum(self) -> DescribeQuorumResponse:
        states = {
            each: ReplicaState(
                replica_id=each, last_fetch_timestamp=self.last_fetch_ms.get(each, NOW_MS - 100)
            )
            for each in self.copies
        }
        partition = DescribeQuorumResponsePartitionData(
            leader_id=self.leader,
            current_voters=[states[each] for each in self.voters],
            observers=[
                *self.gone,
                *(state for each, state in states.items() if each not in self.voters),
            ],
        )
        nodes = [
            Node(
                node_id=each,
                listeners=[
                    Listener(name="CONTROLLER", host=controller(each).host, port=controller(each).port)
                ],
            )
            for each in self.voters
        ]
        topic = DescribeQuorumResponseTopicData(topic_name="__cluster_metadata", partitions=[partition])
        return DescribeQuorumResponse(topics=[topic], nodes=nodes)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


async def run(to: int) -> list[str]:
    said: list[str] = []
    await Handover(BROKER, to, say=said.append).run()
    return said


async def test_one_comes_and_the_other_goes(cluster: Cluster) -> None:
    assert await run(2) == ["node 2 votes", "node 1 votes no longer", "node 2 is the controller"]
    assert cluster.done == [("add", 2), ("remove", 1)]


async def test_what_is_done_is_not_done_again(cluster: Cluster) -> None:
    cluster.voters = [1, 2]
    assert await run(2) == ["node 1 votes no longer", "node 2 is the controller"]
    assert await run(2) == ["node 2 is the controller"]


async def test_who_votes_beside_a_node_that_leads_already_goes_on_voting(cluster: Cluster) -> None:
    cluster.copies = [1, 2, 3]
    cluster.voters = [1, 2, 3]
    cluster.leader = 2
    assert await run(2) == ["node 2 is the controller already; 1, 3 vote, too"]
    assert cluster.done == []


async def test_the_leader_goes_last(cluster: Cluster) -> None:
    cluster.copies = [1, 2, 3, 4]
    cluster.voters = [2, 3, 4]
    cluster.leader = 3
    cluster.list_of_broker = str(controller(1))
    await run(1)
    assert cluster.done == [("remove", 2), ("remove", 4), ("add", 1), ("remove", 3)]


async def test_a_copy_that_is_gone_does_not_get_the_vote_of_its_node(cluster: Cluster) -> None:
    cluster.gone = [
        ReplicaState(replica_id=2, replica_directory_id=OLD_ID, last_fetch_timestamp=NOW_MS - 60_000)
    ]
    await run(2)
    assert cluster.directory_ids == [ZERO_UUID]


async def test_a_node_that_has_just_been_started_is_waited_for(
    cluster: Cluster, autojump_clock: object
) -> None:
    cluster.copies = [1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, 2)
        await trio.sleep(3)
        cluster.copies = [1, 2]
    assert cluster.done == [("add", 2), ("remove", 1)]


async def test_a_controller_that_has_not_registered_is_waited_for(
    cluster: Cluster, autojump_clock: object
) -> None:
    cluster.controllers = [1]
    handover = Handover(BROKER, 2, say=lambda _: None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(handover.run)
        await trio.sleep(20)
        assert handover.hindrance == "node 2 has not registered as a controller"
        cluster.controllers = [1, 2]
    assert cluster.done == [("add", 2), ("remove", 1)]


async def test_a_mere_broker_is_refused(cluster: Cluster, autojump_clock: object) -> None:
    cluster.controllers = [1]
    cluster.brokers = {1: BROKER, 2: Address("127.0.0.1", 9093)}
    with pytest.raises(HandoverRefused, match="node 2 has not registered as a controller, only as a broker"):
        await run(2)
    assert trio.current_time() < 10
    assert cluster.done == []


async def test_a_copy_that_lags_behind_is_waited_for(cluster: Cluster, autojump_clock: object) -> None:
    cluster.refusals = [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER]
    await run(2)
    assert cluster.done == [("add", 2), ("remove", 1)]


@pytest.mark.parametrize(
    ("prepare", "to", "text"),
    [
        (lambda cluster: None, 7, "node 7 does not copy the metadata"),
        (
            lambda cluster: cluster.last_fetch_ms.update({2: NOW_MS - 20_000}),
            2,
            "node 2 copies the metadata no longer",
        ),
        (lambda cluster: setattr(cluster, "list_of_broker", str(controller(1))), 2, "would not find node 2"),
        (lambda cluster: setattr(cluster, "list_of_broker", ""), 2, "cannot be asked"),
        (
            lambda cluster: cluster.refusals.append(ErrorCode.UNSUPPORTED_VERSION),
            2,
            "node 2 cannot vote: for a reason",
        ),
    ],
)
async def test_refusals(
    cluster: Cluster, prepare: Callable[[Cluster], None], to: int, text: str, autojump_clock: object
) -> None:
    prepare(cluster)
    with pytest.raises(HandoverRefused, match=text):
        await run(to)
    assert cluster.done == []


class TestCommand:
    def test_it_tells_what_is_done(self, cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
        assert hand_over(["--bootstrap-server", str(BROKER), "--to", "2"]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == "node 2 is the controller"

    def test_a_refusal_is_one_line(
        self, cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ottla.handover.ARRIVAL_SECONDS", 0)
        assert hand_over(["--bootstrap-server", str(BROKER), "--to", "7"]) == 2
        assert capsys.readouterr().err.startswith("ottla handover: node 7 does not copy")

    def test_it_does_not_try_for_ever(self, cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
        cluster.refusals = [ErrorCode.REQUEST_TIMED_OUT] * 100
        options = ["--bootstrap-server", str(BROKER), "--to", "2", "--timeout", "0.2"]
        assert hand_over(options) == 1
        assert "do it again" in capsys.readouterr().err

    @pytest.mark.parametrize("wrong", ["nowhere", ":9092", "host:x", "host:65536", "host:²"])
    def test_an_address_has_a_port(self, wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            hand_over(["--bootstrap-server", wrong, "--to", "2"])
        assert "no HOST:PORT" in capsys.readouterr().err

    @pytest.mark.parametrize("wrong", ["-1", "nan", "soon"])
    def test_it_tries_for_some_time(self, wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            hand_over(["--bootstrap-server", "host:1", "--to", "2", "--timeout", wrong])
        assert "invalid seconds value" in capsys.readouterr().err

    def test_it_goes_on_when_nobody_reads_any_more(self, monkeypatch: pytest.MonkeyPatch) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w") as unheard:
            monkeypatch.setattr("sys.stdout", unheard)
            _say("step 1")
            _say("step 2")

    def test_it_says_why_it_is_not_done(self, capsys: pytest.CaptureFixture[str]) -> None:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{nobody.getsockname()[1]}"
            status = hand_over(["--bootstrap-server", address, "--to", "3", "--timeout", "0.2"])
        assert status == 1
        assert capsys.readouterr().err == (
            f"ottla handover: not done after 0.2 s ({address}: Connection refused); do it again to go on\n"
        )
