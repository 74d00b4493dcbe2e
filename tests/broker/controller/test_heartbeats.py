"""What a heartbeat comes to, by the broker's state and by what it wants."""

from typing import Any

import pytest

from broker.controller.decision import Decision
from broker.controller.elections import TopicRules
from broker.controller.heartbeats import Heartbeat, HeartbeatReply, fence_stale_broker, process_heartbeat
from broker.controller.sessions import BrokerSessions
from broker.metadata.image import MetadataImage
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.metadata_records import BrokerRegistrationChangeRecord
from tests.broker.metadata.records import (
    after,
    broker,
    directory,
    features,
    image_of,
    partition,
    topic,
    uuid,
)

OWN = 1
TOPIC = uuid(1000)


class Cluster:
    """Three brokers, of which the controller's own is one, and what heartbeats make of them."""

    def __init__(self, *more: object, level: int = 33) -> None:
        self.sessions = BrokerSessions(9000, OWN)
        self.image: MetadataImage = image_of(features(level), *more)  # type: ignore[arg-type]

    def rules(self) -> TopicRules:
        return TopicRules(self.image, default_min_isr=1, default_unclean_election=False)

    def apply(self, decision: Decision[Any]) -> None:
        self.image = after(self.image, [record for record, _ in decision.records])

    def beat(self, broker_id: int = 2, *, offset: int = 1000, **wishes: object) -> HeartbeatReply:
        heartbeat = Heartbeat(broker_id, 100, offset, **wishes)  # type: ignore[arg-type]
        decision = process_heartbeat(self.image, heartbeat, self.sessions, self.rules())
        self.apply(decision)
        return decision.reply

    def fence_stale(self, now_ms: float) -> int | None:
        decision = fence_stale_broker(self.image, self.sessions, self.rules(), now_ms)
        self.apply(decision)
        return decision.reply

    def leader(self, index: int = 0) -> int:
        return self.image.topics_by_id[TOPIC].partitions[index].leader


def three(**second: object) -> Cluster:
    return Cluster(
        broker(1),
        broker(2, **second),  # type: ignore[arg-type]
        broker(3),
        topic("a", TOPIC, partition([2, 3, 1]), partition([3, 2])),
    )


class TestFenced:
    def test_who_is_not_caught_up_stays_fenced(self) -> None:
        cluster = three(fenced=True)
        assert cluster.beat(offset=99) == HeartbeatReply(False, True, False)
        assert cluster.image.brokers[2].fenced

    def test_who_wants_to_stay_fenced_does(self) -> None:
        cluster = three(fenced=True)
        assert cluster.beat(offset=100, want_fence=True) == HeartbeatReply(True, True, False)

    def test_who_is_caught_up_and_wants_to_serve_does(self) -> None:
        cluster = Cluster(
            broker(1), broker(2, fenced=True), topic("a", TOPIC, partition([2, 1], [2], leader=-1))
        )
        assert cluster.beat(offset=100) == HeartbeatReply(True, False, False)
        assert not cluster.image.brokers[2].fenced
        assert cluster.leader() == 2

    def test_the_registration_s_own_offset_counts(self) -> None:
        cluster = three(fenced=True)
        cluster.sessions.registered(2, 105)
        assert not cluster.beat(offset=104).is_caught_up
        assert cluster.beat(offset=105).is_caught_up

    def test_it_may_go_at_once(self) -> None:
        cluster = three(fenced=True)
        assert cluster.beat(want_shut_down=True) == HeartbeatReply(True, True, True)
        assert cluster.image.brokers[2].fenced


class TestServing:
    def test_nothing_changes(self) -> None:
        cluster = three()
        before = cluster.image
        assert cluster.beat() == HeartbeatReply(True, False, False)
        assert cluster.image is before

    def test_it_is_fenced_if_it_likes(self) -> None:
        cluster = three()
        assert cluster.beat(want_fence=True) == HeartbeatReply(True, True, False)
        assert cluster.image.brokers[2].fenced
        assert cluster.leader() == 3

    def test_fenced_and_gone(self) -> None:
        cluster = three()
        assert cluster.beat(want_fence=True, want_shut_down=True) == HeartbeatReply(True, True, True)

    def test_who_leads_nothing_may_go_at_once(self) -> None:
        cluster = Cluster(broker(1), broker(2), topic("a", TOPIC, partition([1, 2])))
        assert cluster.beat(want_shut_down=True) == HeartbeatReply(True, True, True)
        assert cluster.image.brokers[2].fenced
        assert cluster.image.topics["a"].partitions[0].isr == (1,)


class TestControlledShutdown:
    def test_others_lead_first_and_know_it(self) -> None:
        cluster = three()
        cluster.beat(3, offset=1)
        assert cluster.beat(want_shut_down=True) == HeartbeatReply(True, False, False)
        moved_at = cluster.image.offset
        assert cluster.leader() == 3
        assert cluster.image.brokers[2].in_controlled_shutdown
        assert not cluster.image.brokers[2].fenced
        assert not cluster.beat(want_shut_down=True).should_shut_down
        cluster.beat(3, offset=moved_at - 1)
        assert not cluster.beat(want_shut_down=True).should_shut_down
        cluster.beat(3, offset=moved_at)
        assert cluster.beat(want_shut_down=True) == HeartbeatReply(True, True, True)
        assert cluster.image.brokers[2].fenced

    def test_nobody_waits_for_a_successor_that_does_not_exist(self) -> None:
        cluster = Cluster(broker(1), broker(2), topic("a", TOPIC, partition([2, 1], [2])))
        assert not cluster.beat(want_shut_down=True).should_shut_down
        left = cluster.image.topics["a"].partitions[0]
        assert (left.leader, left.isr, left.eligible_leader_replicas) == (-1, (), (2,))
        assert cluster.beat(want_shut_down=True).should_shut_down

    def test_alone_with_the_controller_s_own_broker(self) -> None:
        cluster = Cluster(broker(1), broker(2), topic("a", TOPIC, partition([2, 1])))
        assert not cluster.beat(want_shut_down=True).should_shut_down
        assert cluster.leader() == 1
        assert cluster.beat(want_shut_down=True).should_shut_down

    def test_a_new_controller_that_knows_no_offset_lets_who_leads_nothing_go(self) -> None:
        cluster = three()
        cluster.beat(want_shut_down=True)
        cluster.sessions = BrokerSessions(9000, OWN)
        assert cluster.beat(want_shut_down=True).should_shut_down

    def test_the_record_is_written_once(self) -> None:
        cluster = three()
        heartbeat = Heartbeat(2, 100, 1000, want_shut_down=True)
        decision = process_heartbeat(cluster.image, heartbeat, cluster.sessions, cluster.rules())
        record, version = decision.records[0]
        assert record == BrokerRegistrationChangeRecord(
            broker_id=2, broker_epoch=100, in_controlled_shutdown=1
        )
        assert version == 1


class TestDirectories:
    def cluster(self) -> Cluster:
        return Cluster(broker(1), broker(2, directories=2, fenced=True), topic("a", TOPIC, partition([2, 1])))

    def test_failed_ones(self) -> None:
        cluster = self.cluster()
        cluster.beat(offline=[directory(2)])
        assert cluster.image.brokers[2].directories == (directory(102),)
        assert cluster.leader() == 1

    def test_what_was_found_failed_before_changes_nothing(self) -> None:
        cluster = self.cluster()
        cluster.beat(offline=[directory(2)])
        before = cluster.image
        cluster.beat(offline=[directory(2)])
        assert cluster.image is before

    def test_cordoned_ones(self) -> None:
        cluster = self.cluster()
        cluster.beat(cordoned=[directory(102)])
        assert cluster.image.brokers[2].cordoned_directories == (directory(102),)
        before = cluster.image
        cluster.beat(cordoned=None)
        assert cluster.image is before
        cluster.beat(cordoned=[])
        assert not cluster.image.brokers[2].cordoned_directories

    def test_older_levels_know_none(self) -> None:
        cluster = Cluster(broker(1), broker(2), level=29)
        before = cluster.image
        cluster.beat(cordoned=[directory(2)])
        assert cluster.image is before


@pytest.mark.parametrize(("broker_id", "epoch"), [(2, 99), (2, 101), (4, 100)])
def test_only_the_present_incarnation_is_answered(broker_id: int, epoch: int) -> None:
    cluster = three()
    with pytest.raises(KafkaError) as raised:
        process_heartbeat(cluster.image, Heartbeat(broker_id, epoch, 1000), cluster.sessions, cluster.rules())
    assert raised.value.code is ErrorCode.STALE_BROKER_EPOCH


class TestFencingTheStale:
    def test_it_loses_what_it_led(self) -> None:
        cluster = three()
        cluster.sessions.heard(2, 100, 0)
        assert cluster.fence_stale(9000) is None
        assert cluster.fence_stale(9001) == 2
        assert cluster.image.brokers[2].fenced
        assert cluster.leader() == 3
        assert cluster.fence_stale(9001) is None

    @pytest.mark.parametrize(("broker_id", "epoch"), [(2, 99), (4, 100)])
    def test_incarnations_of_the_past_are_only_forgotten(self, broker_id: int, epoch: int) -> None:
        cluster = three()
        cluster.sessions.heard(broker_id, epoch, 0)
        before = cluster.image
        assert cluster.fence_stale(9001) is None
        assert cluster.image is before
        assert cluster.sessions.end_ms() is None

    def test_one_in_a_controlled_shutdown_may_go_when_it_is_back(self) -> None:
        cluster = three()
        cluster.sessions.heard(2, 100, 0)
        cluster.beat(want_shut_down=True)
        assert cluster.fence_stale(9001) == 2
        assert cluster.beat(want_shut_down=True).should_shut_down
