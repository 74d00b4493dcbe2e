"""What a leader concludes from its followers' fetches, after Kafka's ``Partition`` and ``Replica``."""

from typing import Any

import pytest

from broker.metadata.image import BrokerImage, PartitionImage
from broker.partitions.replication import FollowerState, IsrProposal, Replication
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.uuids import LOST_DIRECTORY, ZERO_UUID

LAG_MAX_MS = 30_000
NOW_MS = 1_000_000


def broker(broker_id: int, **changes: Any) -> BrokerImage:
    registration = BrokerImage(
        id=broker_id, epoch=broker_id * 10, incarnation_id=ZERO_UUID, endpoints=(), features={}, fenced=False
    )
    return registration._replace(**changes)


class Followed:
    """Broker 1 leads; the image says what a test says."""

    def __init__(self, replicas: tuple[int, ...] = (1, 2, 3), isr: tuple[int, ...] = (1, 2, 3)) -> None:
        self.brokers = {broker_id: broker(broker_id) for broker_id in range(1, 5)}
        self.image = PartitionImage(
            replicas=replicas,
            isr=isr,
            leader=1,
            leader_epoch=5,
            partition_epoch=7,
            directories=(ZERO_UUID,) * len(replicas),
        )
        self.state = Replication(1, lambda: self.brokers, lag_max_ms=LAG_MAX_MS)
        self.now_ms = NOW_MS
        self.log_end = 100
        self.state.follow(self.image, epoch_start=100, now_ms=NOW_MS)

    def change(self, *, epoch_start: int = 100, **changes: Any) -> bool:
        if "replicas" in changes:
            changes.setdefault("directories", (ZERO_UUID,) * len(changes["replicas"]))
        self.image = self.image._replace(partition_epoch=self.image.partition_epoch + 1, **changes)
        return self.state.follow(self.image, epoch_start=epoch_start, now_ms=self.now_ms)

    def fetched(self, broker_id: int, offset: int, *, log_start: int = 0, epoch: int | None = None) -> bool:
        return self.state.fetched(
            broker_id,
            offset,
            log_start=log_start,
            now_ms=self.now_ms,
            leader_end=self.log_end,
            broker_epoch=broker_id * 10 if epoch is None else epoch,
        )

    def high_watermark(self, min_insync_replicas: int = 1) -> int | None:
        return self.state.high_watermark(
            self.log_end,
            log_end=self.log_end,
            now_ms=self.now_ms,
            min_insync_replicas=min_insync_replicas,
        )

    def accept(self, proposal: IsrProposal | None) -> bool:
        assert proposal is not None
        return self.state.accepted(
            proposal,
            proposal.isr,
            leader_epoch=proposal.leader_epoch,
            partition_epoch=proposal.partition_epoch + 1,
        )


def test_the_high_watermark_is_what_all_in_sync_have() -> None:
    followed = Followed()
    assert followed.high_watermark() == -1  # nobody has fetched
    followed.fetched(2, 90)
    followed.fetched(3, 95)
    assert followed.high_watermark() == 90
    followed.fetched(2, 100)
    followed.fetched(3, 100)
    assert followed.high_watermark() == 100


def test_a_fetch_tells_whether_the_follower_has_more_than_before() -> None:
    followed = Followed()
    assert followed.fetched(2, 90)
    assert not followed.fetched(2, 90)


def test_those_out_of_sync_hold_nothing_up() -> None:
    followed = Followed(isr=(1, 2))
    followed.fetched(2, 100)
    followed.fetched(3, 10)
    assert followed.high_watermark() == 100


def test_who_has_caught_up_and_is_about_to_join_is_waited_for() -> None:
    followed = Followed(isr=(1, 2))
    followed.fetched(2, 100)
    followed.fetched(3, 100)
    followed.log_end = 110
    followed.fetched(2, 110)
    assert followed.high_watermark() == 100
    followed.brokers[3] = broker(3, fenced=True)  # it may not join
    assert followed.high_watermark() == 110
    followed.brokers[3] = broker(3)
    followed.now_ms += LAG_MAX_MS + 1
    assert followed.high_watermark() == 110


@pytest.mark.parametrize(("min_isr", "expected"), [(1, 100), (2, 100), (3, None), (9, None)])
def test_too_few_in_sync_keep_the_high_watermark_where_it_is(min_isr: int, expected: int | None) -> None:
    followed = Followed(isr=(1, 2))
    followed.fetched(2, 100)
    assert followed.high_watermark(min_isr) == expected


def test_min_isr_is_at_most_the_number_of_replicas() -> None:
    followed = Followed(replicas=(1, 2), isr=(1, 2))
    followed.fetched(2, 100)
    assert followed.high_watermark(min_insync_replicas=3) == 100


def test_a_follower_that_never_reaches_the_end_has_caught_up_with_what_was_there() -> None:
    state = FollowerState()
    fetch: dict[str, Any] = {"log_start": 0, "broker_epoch": 1}
    state.fetched(0, now_ms=1000, leader_end=50, **fetch)
    assert state.last_caught_up_ms == 0
    state.fetched(50, now_ms=2000, leader_end=60, **fetch)
    assert state.last_caught_up_ms == 1000
    state.fetched(55, now_ms=3000, leader_end=70, **fetch)
    assert state.last_caught_up_ms == 1000
    state.fetched(70, now_ms=4000, leader_end=70, **fetch)
    assert state.last_caught_up_ms == 4000


def test_late_members_are_let_go() -> None:
    followed = Followed()
    followed.fetched(2, 100)
    followed.fetched(3, 50)
    followed.now_ms += LAG_MAX_MS
    assert followed.state.propose_shrinking(followed.log_end, followed.now_ms) is None
    followed.now_ms += 1
    proposal = followed.state.propose_shrinking(followed.log_end, followed.now_ms)
    assert proposal is not None
    assert (proposal.isr, proposal.broker_epochs) == ([1, 2], [10, 20])  # 2 has everything, however long ago
    assert (proposal.leader_epoch, proposal.partition_epoch) == (5, 7)


def test_until_a_member_is_let_go_it_is_waited_for() -> None:
    followed = Followed()
    followed.fetched(2, 100)
    followed.fetched(3, 50)
    followed.now_ms += LAG_MAX_MS + 1
    proposal = followed.state.propose_shrinking(followed.log_end, followed.now_ms)
    assert followed.high_watermark() == 50
    assert followed.state.propose_shrinking(followed.log_end, followed.now_ms) is None  # one at a time
    assert followed.accept(proposal)
    assert followed.high_watermark() == 100
    assert followed.state.isr == {1, 2}


def test_who_is_proposed_to_join_is_waited_for_at_once() -> None:
    followed = Followed(isr=(1, 2))
    followed.fetched(2, 100)
    followed.fetched(3, 100)
    proposal = followed.state.propose_expansion(3, 100)
    assert proposal is not None
    assert (proposal.isr, proposal.broker_epochs) == ([1, 2, 3], [10, 20, 30])
    followed.now_ms += LAG_MAX_MS + 1
    followed.log_end = 110
    followed.fetched(2, 110)
    assert followed.high_watermark() == 100
    assert followed.state.isr == {1, 2}


@pytest.mark.parametrize(
    ("offset", "high_watermark", "expected"),
    [(100, 100, True), (100, 101, False), (99, 90, False), (99, 99, False)],
)
def test_who_joins_has_the_high_watermark_and_the_start_of_the_epoch(
    offset: int, high_watermark: int, expected: bool
) -> None:
    """The epoch starts at 100: what lies between may have been committed by the last leader."""
    followed = Followed(isr=(1, 2))
    followed.fetched(3, offset)
    assert (followed.state.propose_expansion(3, high_watermark) is not None) is expected


@pytest.mark.parametrize(
    ("changes", "fetch_epoch", "expected"),
    [
        ({}, 30, True),
        ({}, -1, True),
        ({}, 31, False),  # of a registration that the image does not have yet
        ({"fenced": True}, 30, False),
        ({"in_controlled_shutdown": True}, 30, False),
    ],
)
def test_who_may_join(changes: dict[str, bool], fetch_epoch: int, expected: bool) -> None:
    followed = Followed(isr=(1, 2))
    followed.brokers[3] = broker(3, **changes)
    followed.fetched(3, 100, epoch=fetch_epoch)
    assert (followed.state.propose_expansion(3, 100) is not None) is expected


def test_who_cannot_write_is_neither_waited_for_nor_joins() -> None:
    """Its broker has told the controller that its log directory is lost."""
    followed = Followed()
    followed.fetched(2, 100)
    followed.fetched(3, 100)
    followed.log_end = 110
    followed.change(isr=(1, 2), directories=(ZERO_UUID, ZERO_UUID, LOST_DIRECTORY))
    followed.fetched(2, 110)
    followed.fetched(3, 100)
    assert followed.high_watermark() == 110
    followed.fetched(3, 110)
    assert followed.state.propose_expansion(3, 110) is None
    followed.change(directories=(ZERO_UUID,) * 3)
    assert followed.state.propose_expansion(3, 110) is not None


def test_members_are_not_proposed() -> None:
    followed = Followed()
    followed.fetched(2, 100)
    assert followed.state.propose_expansion(2, 100) is None


def test_fetches_of_a_broker_that_has_registered_again_are_refused() -> None:
    followed = Followed()
    followed.fetched(2, 90)
    followed.brokers[2] = broker(2, epoch=21)
    with pytest.raises(KafkaError) as refusal:
        followed.fetched(2, 100, epoch=20)
    assert refusal.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert followed.state.followers[2].log_end == 90
    followed.brokers[2] = broker(2, epoch=21, fenced=True)  # it counts only those that are not
    assert followed.fetched(2, 100, epoch=20)


def test_another_epoch_of_the_same_leader_begins_anew() -> None:
    followed = Followed(isr=(1, 2))
    followed.fetched(2, 100)
    followed.fetched(3, 100)
    followed.now_ms += 5000
    assert followed.change(leader_epoch=6, epoch_start=120)
    state = followed.state
    assert state.epoch_start == 120
    assert [state.followers[each].log_end for each in (2, 3)] == [100, 100]
    assert [state.followers[each].last_caught_up_ms for each in (2, 3)] == [followed.now_ms, 0]
    assert state.propose_expansion(3, 100) is None


def test_replicas_come_and_go() -> None:
    followed = Followed(replicas=(1, 2), isr=(1, 2))
    followed.fetched(2, 100)
    followed.change(replicas=(1, 2, 4), adding_replicas=(4,))
    assert list(followed.state.followers) == [2, 4]
    assert followed.high_watermark() == 100
    followed.fetched(4, 100)
    assert followed.accept(followed.state.propose_expansion(4, 100))
    assert followed.state.isr == {1, 2, 4}
    assert followed.state.partition_epoch == 9
    followed.image = followed.image._replace(partition_epoch=9)
    followed.change(replicas=(1, 4), isr=(1, 4), adding_replicas=())
    assert list(followed.state.followers) == [4]


def test_an_image_older_than_the_controllers_answer_changes_nothing() -> None:
    followed = Followed(isr=(1, 2))
    followed.fetched(3, 100)
    assert followed.accept(followed.state.propose_expansion(3, 100))
    assert not followed.state.follow(followed.image, epoch_start=0, now_ms=NOW_MS)
    assert followed.state.isr == {1, 2, 3}


def test_a_newer_image_overtakes_a_proposal() -> None:
    followed = Followed(isr=(1, 2))
    followed.fetched(3, 100)
    proposal = followed.state.propose_expansion(3, 100)
    followed.change(isr=(1,))
    assert followed.state.maximal_isr == {1}
    assert not followed.accept(proposal)
    assert followed.state.isr == {1}


def test_the_same_image_again_leaves_a_proposal_standing() -> None:
    followed = Followed(isr=(1, 2))
    followed.fetched(3, 100)
    proposal = followed.state.propose_expansion(3, 100)
    assert followed.state.follow(followed.image, epoch_start=0, now_ms=NOW_MS)
    assert followed.state.pending is proposal


@pytest.mark.parametrize(
    ("code", "again", "pending"),
    [
        (ErrorCode.INELIGIBLE_REPLICA, False, False),
        (ErrorCode.OPERATION_NOT_ATTEMPTED, False, False),
        (ErrorCode.FENCED_LEADER_EPOCH, False, True),
        (ErrorCode.INVALID_UPDATE_VERSION, False, True),
        (ErrorCode.INVALID_REQUEST, False, True),
        (ErrorCode.NEW_LEADER_ELECTED, False, True),
        (ErrorCode.UNKNOWN_TOPIC_ID, False, True),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False, True),
        (ErrorCode.NOT_CONTROLLER, True, True),
        (ErrorCode.UNKNOWN_SERVER_ERROR, True, True),
    ],
)
def test_what_a_refusal_means(code: ErrorCode, again: bool, pending: bool) -> None:
    followed = Followed(isr=(1, 2))
    followed.fetched(3, 100)
    proposal = followed.state.propose_expansion(3, 100)
    assert proposal is not None
    assert followed.state.refused(proposal, code) is again
    assert (followed.state.pending is proposal) is pending


def test_the_low_watermark_heeds_live_replicas() -> None:
    followed = Followed()
    assert followed.state.low_watermark(50) == -1
    followed.fetched(2, 100, log_start=40)
    followed.fetched(3, 100, log_start=10)
    assert followed.state.low_watermark(50) == 10
    followed.brokers[3] = broker(3, fenced=True)
    assert followed.state.low_watermark(50) == 40
    assert followed.state.low_watermark(30) == 30
