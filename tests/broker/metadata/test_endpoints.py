"""By which address clients are sent to a broker."""

from broker.metadata.client_view import ClientView, controller_id
from broker.metadata.endpoints import Advertised, Node
from broker.metadata.image import MetadataImage
from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.stored.metadata_records import BrokerRegistrationChangeRecord
from tests.broker.controller.node import ControllerNode
from tests.broker.metadata.records import after, broker, features, image_of, partition, topic, uuid

FENCE_2 = BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=100, fenced=1)


def call(listener: str = "PLAINTEXT") -> Call:
    """A call that arrived at 10.0.0.1:9092."""
    return ControllerNode().call(3, 13, listener=listener)


def view(image: MetadataImage, listener: str = "PLAINTEXT") -> ClientView:
    return ClientView(image, listener, Advertised(1).alive_nodes(image, call(listener)))


def test_a_given_address_is_told() -> None:
    image = image_of(broker(1, rack="r"))
    assert Advertised(1).alive_nodes(image, call()) == [Node(1, "broker1", 9092, "r", False)]


def test_without_one_a_lone_broker_answers_with_the_address_it_was_reached_by() -> None:
    image = image_of(broker(1))
    advertised = Advertised(1, ["PLAINTEXT"])
    assert advertised.alive_nodes(image, call()) == [Node(1, "10.0.0.1", 9092, None, False)]
    assert advertised.node(image, 1, call()) == (1, "10.0.0.1", 9092, None, False)


def test_with_another_broker_registered_the_registration_counts() -> None:
    image = image_of(broker(1), broker(2))
    advertised = Advertised(1, ["PLAINTEXT"])
    assert [node.host for node in advertised.alive_nodes(image, call())] == ["broker1", "broker2"]
    image = after(image, FENCE_2)
    assert [node.host for node in advertised.alive_nodes(image, call())] == ["broker1"]


def test_only_the_listeners_without_an_address_follow_the_client() -> None:
    advertised = Advertised(1, ["INTERNAL"])
    assert advertised.alive_nodes(image_of(broker(1)), call())[0].host == "broker1"


def test_fenced_brokers_and_other_listeners() -> None:
    image = after(image_of(broker(1), broker(2)), FENCE_2)
    advertised = Advertised(1)
    assert [node.id for node in advertised.alive_nodes(image, call())] == [1]
    assert [(node.id, node.is_fenced) for node in advertised.all_nodes(image, call())] == [
        (1, False),
        (2, True),
    ]
    assert advertised.alive_nodes(image, call("INTERNAL")) == []
    assert advertised.node(image, 3, call()) is None


class TestClientView:
    IMAGE = image_of(
        features(),
        broker(1),
        broker(2),
        topic(
            "a",
            uuid(1000),
            partition([1, 2]),
            partition([2, 1]),
            partition([1], [], leader=-1),
            partition([7], leader=7),
        ),
    )

    def test_leaders(self) -> None:
        led, by_other, leaderless, gone = self.IMAGE.topics["a"].partitions
        seen = view(self.IMAGE)
        assert seen.leader(led) == (1, ErrorCode.NONE)
        assert seen.leader(by_other) == (2, ErrorCode.NONE)
        assert seen.leader(leaderless) == (-1, ErrorCode.LEADER_NOT_AVAILABLE)
        assert seen.leader(gone) == (-1, ErrorCode.LEADER_NOT_AVAILABLE)
        assert controller_id(seen.alive, 1) == 1
        assert controller_id(seen.alive, 99) == seen.alive[0].id, "who answers is fenced"

    def test_a_leader_without_the_listener(self) -> None:
        seen = view(self.IMAGE, "INTERNAL")
        led = self.IMAGE.topics["a"].partitions[0]
        assert seen.leader(led) == (-1, ErrorCode.LISTENER_NOT_FOUND)
        assert seen.offline(led) == [1, 2]
        assert controller_id(seen.alive, 1) == -1

    def test_a_leader_that_was_fenced_a_moment_ago(self) -> None:
        seen = view(after(self.IMAGE, FENCE_2))
        by_other = self.IMAGE.topics["a"].partitions[1]
        assert seen.leader(by_other) == (2, ErrorCode.NONE)
        assert seen.offline(by_other) == [2]
        assert not seen.is_reachable(2)

    def test_replicas_in_lost_directories_are_offline(self) -> None:
        lost = self.IMAGE.topics["a"].partitions[0]._replace(directories=(uuid(2), uuid(1)))
        assert view(self.IMAGE).offline(lost) == [1]
