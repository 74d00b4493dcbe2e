"""Voters of the metadata quorum, and registrations that are to be forgotten."""

from compat.oracle.conversation import conversation
from compat.oracle.talk import Talk
from compat.probe import split_address
from protocol.api_keys import ApiKey
from protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from protocol.messages.unregister_broker import UnregisterBrokerRequest
from protocol.messages.unregister_controller import UnregisterControllerRequest
from protocol.uuids import ZERO_UUID

DIRECTORY = bytes(range(1, 17))

CONTROLLER = "CONTROLLER"

NOBODY = ("127.0.0.1", 1)
"""An address where nothing listens."""


def add(
    voter_id: int,
    directory_id: bytes = DIRECTORY,
    *listeners: tuple[str, tuple[str, int]],
    cluster_id: str | None = None,
) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=1000,
        voter_id=voter_id,
        voter_directory_id=directory_id,
        listeners=[Listener(name=name, host=host, port=port) for name, (host, port) in listeners],
    )


def remove(
    voter_id: int, directory_id: bytes = DIRECTORY, *, cluster_id: str | None = None
) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=directory_id)


@conversation(ApiKey.ADD_RAFT_VOTER, alone=True)
def voters_that_come(talk: Talk) -> None:
    """None can, as none has the log.  Ids differ: who did not answer is left alone for a while."""
    first = 10 + 10 * talk.version_of(ApiKey.ADD_RAFT_VOTER)
    cluster_id = talk.origin.cluster_id
    here = split_address(talk.origin.address)
    talk.ask("of another cluster", add(first, DIRECTORY, (CONTROLLER, NOBODY), cluster_id="another"))
    talk.ask("of a cluster without a name", add(first, DIRECTORY, (CONTROLLER, NOBODY), cluster_id=""))
    talk.ask("without an id", add(-1, DIRECTORY, (CONTROLLER, NOBODY)))
    talk.ask("without a directory", add(first, ZERO_UUID, (CONTROLLER, NOBODY)))
    talk.ask("without a listener", add(first, DIRECTORY))
    talk.ask("with another listener", add(first, DIRECTORY, ("another", NOBODY)))
    talk.ask("with two other listeners", add(first, DIRECTORY, ("b", NOBODY), ("a", NOBODY)))
    talk.ask("with one listener twice", add(first, DIRECTORY, ("b", NOBODY), ("B", ("elsewhere", 2))))
    talk.ask("one that votes already", add(1, DIRECTORY, (CONTROLLER, NOBODY)))
    talk.ask("one that does not listen", add(first, DIRECTORY, (CONTROLLER, NOBODY), cluster_id=cluster_id))
    talk.ask("one that does not listen, in small letters", add(first + 1, DIRECTORY, ("controller", NOBODY)))
    talk.ask("one that lags behind", add(first + 2, DIRECTORY, (CONTROLLER, here)))
    talk.ask("one that still lags behind", add(first + 2, DIRECTORY, ("other", NOBODY), (CONTROLLER, here)))


@conversation(ApiKey.REMOVE_RAFT_VOTER)
def voters_that_go(talk: Talk) -> None:
    talk.ask("of another cluster", remove(2, cluster_id="another"))
    talk.ask("without an id", remove(-1))
    talk.ask("without a directory", remove(1, ZERO_UUID))
    talk.ask("one that does not vote", remove(2, cluster_id=talk.origin.cluster_id))
    talk.ask("one that votes with another directory", remove(1))


@conversation(ApiKey.UNREGISTER_BROKER, ApiKey.UNREGISTER_CONTROLLER)
def nodes_that_are_not_there(talk: Talk) -> None:
    for node in (2, 0, -1):
        talk.ask(f"broker {node}", UnregisterBrokerRequest(broker_id=node))
        talk.ask(f"controller {node}", UnregisterControllerRequest(controller_id=node))
    talk.ask("the controller that decides", UnregisterControllerRequest(controller_id=1))
