"""Handing the controller over to another node of the cluster, step by step, while everything goes on.

The newcomer copies the metadata already.  All others but the one that leads vote no longer, the newcomer
becomes a voter, the one that leads goes, and then the newcomer leads.  Each step can be done again: what is
done already is passed over.
"""

import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import trio

from broker.metadata.topic_names import CLUSTER_METADATA
from broker.network.call import Address
from broker.network.node_client import NodeClient, NodeUnreachable
from broker.network.transport import SocketTransport
from protocol.error_codes import ErrorCode
from protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    ReplicaState,
)
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from protocol.schema import Message

Found = TypeVar("Found")

ASK_SECONDS: Final = 10.0
PAUSE_SECONDS: Final = 0.1

SILENCE_MS: Final = 10_000
"""A node that copies asks twice a second."""

ARRIVAL_SECONDS: Final = 5.0
"""So long a node that has just been started may take until the leader knows of it."""

CONTROLLERS: Final = 2
"""DescribeCluster's endpoint type for them (KIP-919)."""

BROKER_CONFIGS: Final = 4
"""DescribeConfigs' resource type of a broker."""

LISTS: Final = ("controller.quorum.bootstrap.servers", "controller.quorum.voters")
"""The settings by which a node finds controllers."""

PASSING: Final = frozenset(
    (
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.BROKER_NOT_AVAILABLE,
    )
)
"""Errors behind which the same question may be answered: a copy lags behind, or somebody else leads now."""


class HandoverRefused(Exception):
    """Why the controller cannot be handed over, in one line."""


class Replica(NamedTuple):
    """A copy of the metadata log: a node that was formatted anew has another one."""

    id: int
    directory_id: bytes
    last_fetch_ms: int
    """When it has asked the leader for more, by the leader's clock; of the leader itself: now."""

    def is_same(self, other: "Replica") -> bool:
        return (self.id, self.directory_id) == (other.id, other.directory_id)


class Quorum(NamedTuple):
    """Who leads, who votes and who copies."""

    leader_id: int
    voters: tuple[Replica, ...]
    observers: tuple[Replica, ...]
    listeners: Mapping[int, Sequence[tuple[str, Address]]]
    """Where the voters' controllers listen."""

    def find(self, node_id: int) -> Replica | None:
        """The node's copy; a leader knows for some time of one that is gone, too."""
        replicas = [each for each in (*self.voters, *self.observers) if each.id == node_id]
        return max(replicas, key=lambda replica: replica.last_fetch_ms, default=None)

    def is_silent(self, replica: Replica) -> bool:
        """Whether the leader has not heard of a copy lately: a vote of it would be of no use."""
        now_ms = max((each.last_fetch_ms for each in self.voters if each.id == self.leader_id), default=0)
        return replica.last_fetch_ms < now_ms - SILENCE_MS

    def votes(self, replica: Replica) -> bool:
        return any(voter.is_same(replica) for voter in self.voters)

    @property
    def voter_ids(self) -> list[int]:
        return sorted(voter.id for voter in self.voters)


class Handover:
    """One handing over; ``say`` is told of each step that is done."""

    def __init__(self, broker: Address, to: int, *, say: Callable[[str], None]) -> None:
        """``broker`` is any one of the cluster, and ``to`` the id of the node that is to lead."""
        self._transport = SocketTransport()
        self._broker = broker
        self._to = to
        self._say = say
        self.hindrance: str | None = None
        """What is in the way, as far as is known, for who loses patience."""

    async def run(self) -> None:
        """Return when the node leads, alone among the voters if it did not lead several already.

        Raises HandoverRefused or NodeUnreachable.
        """
        target = await self._find_target()
        quorum = await self._describe()
        address = await self._find_controller(quorum)
        await self._check_lists(address)
        if quorum.leader_id == self._to and len(quorum.voters) > 2:  # Kafka has completed its quorum
            others = ", ".join(str(voter) for voter in quorum.voter_ids if voter != self._to)
            self._say(f"node {self._to} is the controller already; {others} vote, too")
            return
        # At most two vote at a time, as Ottla's nodes expect it.
        for voter in quorum.voters:
            if not voter.is_same(target) and voter.id != quorum.leader_id:
                await self._let_go(voter)
        if not quorum.votes(target):
            await self._until(partial(self._add, target, address))
            self._say(f"node {self._to} votes")
        for voter in (await self._describe()).voters:
            if not voter.is_same(target):
                await self._let_go(voter)
        await self._until(self._leads)
        self._say(f"node {self._to} is the controller")

    async def _find_target(self) -> Replica:
        quorum = await self._describe()
        end = trio.current_time() + ARRIVAL_SECONDS
        while (target := quorum.find(self._to)) is None or quorum.is_silent(target):
            if trio.current_time() > end:
                break
            await trio.sleep(PAUSE_SECONDS)
            quorum = await self._describe()
        else:
            return target
        raise HandoverRefused(
            f"node {self._to} copies the metadata no longer: start it"
            if target is not None
            else f"node {self._to} does not copy the metadata: start it as a controller of this cluster, "
            "formatted with --no-initial-controllers"
        )

    async def _let_go(self, voter: Replica) -> None:
        await self._until(partial(self._remove, voter))
        self._say(f"node {voter.id} votes no longer")

    async def _leads(self) -> bool:
        quorum = await self._describe()
        return quorum.leader_id == self._to and quorum.voter_ids == [self._to]

    async def _add(self, target: Replica, address: Address) -> bool:
        quorum = await self._describe()
        if quorum.votes(target):
            return True
        name, leader = quorum.listeners[quorum.leader_id][0]
        request = AddRaftVoterRequest(
            cluster_id=None,
            timeout_ms=int(ASK_SECONDS * 1000),
            voter_id=target.id,
            voter_directory_id=target.directory_id,
            listeners=[Listener(name=name, host=address.host, port=address.port)],
        )
        return self._is_done(await self._ask(leader, request), f"node {target.id} cannot vote")

    async def _remove(self, voter: Replica) -> bool:
        quorum = await self._describe()
        if not quorum.votes(voter):
            return True
        _, leader = quorum.listeners[quorum.leader_id][0]
        request = RemoveRaftVoterRequest(
            cluster_id=None, voter_id=voter.id, voter_directory_id=voter.directory_id
        )
        return self._is_done(await self._ask(leader, request), f"node {voter.id} cannot go")

    def _is_done(self, answer: Any, what: str) -> bool:
        if answer.error_code and answer.error_code not in PASSING:
            raise HandoverRefused(f"{what}: {answer.error_message or answer.error_code}")
        return not answer.error_code

    # What is asked

    async def _describe(self) -> Quorum:
        """What the leader says.  Brokers pass the question on to it."""
        topic = DescribeQuorumRequestTopicData(
            topic_name=CLUSTER_METADATA, partitions=[DescribeQuorumRequestPartitionData()]
        )

        async def ask() -> Any:
            answer = await self._ask(self._broker, DescribeQuorumRequest(topics=[topic]))
            is_known = (
                not answer.error_code and answer.topics and not answer.topics[0].partitions[0].error_code
            )
            return answer if is_known and answer.nodes else None

        answer = await self._until(ask)
        (told,) = answer.topics[0].partitions
        return Quorum(
            told.leader_id,
            tuple(map(_replica, told.current_voters)),
            tuple(map(_replica, told.observers)),
            {
                node.node_id: [(each.name, Address(each.host, each.port)) for each in node.listeners]
                for node in answer.nodes
            },
        )

    async def _find_controller(self, quorum: Quorum) -> Address:
        """Where the controller of the node that is to lead listens, when it has registered.

        Raises HandoverRefused if the node serves as a broker by now, and still as nothing else.
        """
        end = trio.current_time() + ARRIVAL_SECONDS
        why = f"node {self._to} has not registered as a controller"

        async def find() -> Address | None:
            address = await self._registered_controller(quorum)
            if address is None and trio.current_time() > end:
                brokers = (await self._ask(self._broker, DescribeClusterRequest())).brokers
                if any(broker.broker_id == self._to for broker in brokers):
                    raise HandoverRefused(f"{why}, only as a broker")
            return address

        return await self._until(find, otherwise=why)

    async def _registered_controller(self, quorum: Quorum) -> Address | None:
        if quorum.listeners.get(self._to):
            return quorum.listeners[self._to][0][1]
        _, leader = quorum.listeners[quorum.leader_id][0]
        request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
        for node in (await self._ask(leader, request)).brokers:
            if node.broker_id == self._to:
                return Address(node.host, node.port)
        return None

    async def _check_lists(self, address: Address) -> None:
        """Refuse if there is a broker that would not find the new controller after a restart.

        Its list of controllers must name it: one that finds only those that vote no longer is lost.
        """
        wanted = _resolved(address)
        for broker in (await self._ask(self._broker, DescribeClusterRequest())).brokers:
            resource = DescribeConfigsResource(
                resource_type=BROKER_CONFIGS,
                resource_name=str(broker.broker_id),
                configuration_keys=list(LISTS),
            )
            at = Address(broker.host, broker.port)
            try:
                answer = await self._ask(at, DescribeConfigsRequest(resources=[resource]))
            except NodeUnreachable as error:
                raise HandoverRefused(
                    f"broker {broker.broker_id} cannot be asked which controllers it knows: {error}"
                ) from error
            named = [
                text.strip().rpartition("@")[2]
                for config in answer.results[0].configs
                for text in (config.value or "").split(",")
                if text.strip()
            ]
            if not any(_resolved(_read(text)) & wanted for text in named):
                raise HandoverRefused(
                    f"broker {broker.broker_id} knows the controllers {', '.join(named) or 'of nobody'}, and "
                    f"would not find node {self._to} at {address} after a restart: add that to its "
                    f"{LISTS[0]} first, and restart it"
                )

    async def _ask(self, address: Address, request: Message) -> Any:
        client = NodeClient(self._transport, lambda: address, client_id="ottla-handover")
        try:
            return await client.ask(request, timeout_seconds=ASK_SECONDS)
        finally:
            client.close()

    async def _until(
        self, ask: Callable[[], Awaitable[Found | None]], *, otherwise: str | None = None
    ) -> Found:
        """What is answered at last; whoever cannot be reached is asked again.

        ``otherwise`` is the hindrance while there is an answer, and nothing in it.
        """
        while True:
            try:
                found = await ask()
                self.hindrance = None if found else otherwise
                if found:
                    return found
            except NodeUnreachable as error:  # the leader may just change
                self.hindrance = str(error)
            await trio.sleep(PAUSE_SECONDS)


def _replica(told: ReplicaState) -> Replica:
    return Replica(told.replica_id, told.replica_directory_id, told.last_fetch_timestamp)


def _read(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return Address(host.strip("[]"), int(port))


def _resolved(address: Address) -> set[tuple[str, int]]:
    """All that a name may stand for, so that two names of one place are the same."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError:
        return {(address.host, address.port)}
    return {(str(place[0]), int(place[1])) for *_, place in found}
