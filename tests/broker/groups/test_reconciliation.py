"""One step of one member towards its target: every state, and what the member may claim."""

from typing import Any

import pytest

from broker.groups.consumer_member import ConsumerMember, MemberState
from broker.groups.reconciliation import Claimed, Reconciler, claims_any, claims_only
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError

T, U = b"t" * 16, b"u" * 16


def member(**how: Any) -> ConsumerMember:
    return ConsumerMember("m", member_epoch=3, previous_member_epoch=2)._replace(**how)


def step(
    of: ConsumerMember,
    target: dict[bytes, set[int]],
    *,
    epoch: int = 4,
    claimed: Claimed | None = None,
    reads: tuple[bytes, ...] = (T, U),
    held: tuple[tuple[bytes, int], ...] = (),
    changed: bool = False,
) -> ConsumerMember:
    reconciler = Reconciler(
        of,
        target_epoch=epoch,
        target=target,
        topic_ids=reads,
        claimed=claimed,
        is_owned=lambda topic, partition: (topic, partition) in held,
    )
    return reconciler.step(subscription_changed=changed)


def test_who_is_there_already_stays() -> None:
    there = member(member_epoch=4, assigned={T: {0: 4}})
    assert step(there, {T: {0}}) is there


def test_what_nobody_has_is_given_at_once_in_the_new_epoch() -> None:
    moved = step(member(assigned={T: {0: 2}}), {T: {0, 1}})
    assert (moved.member_epoch, moved.previous_member_epoch) == (4, 3)
    assert moved.assigned == {T: {0: 2, 1: 4}}
    assert moved.state is MemberState.STABLE


def test_what_it_must_give_up_keeps_it_in_its_epoch() -> None:
    moved = step(member(assigned={T: {0: 2, 1: 2}}), {T: {0}, U: {0}})
    assert (moved.member_epoch, moved.previous_member_epoch) == (3, 3)
    assert (moved.assigned, moved.revoking) == ({T: {0: 2}}, {T: {1: 2}})
    assert moved.state is MemberState.UNREVOKED_PARTITIONS


def test_what_it_does_not_claim_any_more_need_not_be_given_up() -> None:
    moved = step(member(assigned={T: {0: 2, 1: 2}}), {T: {0}}, claimed=[(T, [0])])
    assert (moved.member_epoch, moved.assigned, moved.revoking) == (4, {T: {0: 2}}, {})
    assert moved.state is MemberState.STABLE


def test_what_others_hold_is_waited_for() -> None:
    waiting = step(member(), {T: {0, 1}}, held=((T, 1),))
    assert (waiting.member_epoch, waiting.assigned) == (4, {T: {0: 4}})
    assert waiting.state is MemberState.UNRELEASED_PARTITIONS
    assert step(waiting, {T: {0, 1}}, held=((T, 1),)).assigned == {T: {0: 4}}
    there = step(waiting, {T: {0, 1}})
    assert (there.state, there.assigned) == (MemberState.STABLE, {T: {0: 4, 1: 4}})


@pytest.mark.parametrize("claimed", [None, [(T, [0, 1])], [(T, [1])]])
def test_it_does_not_move_while_it_may_have_what_it_must_give_up(claimed: Claimed | None) -> None:
    giving = member(state=MemberState.UNREVOKED_PARTITIONS, assigned={T: {0: 2}}, revoking={T: {1: 2}})
    assert step(giving, {T: {0}}, claimed=claimed) is giving


def test_it_moves_on_when_it_has_given_up() -> None:
    giving = member(state=MemberState.UNREVOKED_PARTITIONS, assigned={T: {0: 2}}, revoking={T: {1: 2}})
    moved = step(giving, {T: {0}}, claimed=[(T, [0])])
    assert (moved.member_epoch, moved.state, moved.revoking) == (4, MemberState.STABLE, {})


def test_what_it_gives_up_may_come_back_to_itself() -> None:
    giving = member(state=MemberState.UNREVOKED_PARTITIONS, assigned={}, revoking={T: {1: 2}})
    moved = step(giving, {T: {1}}, claimed=[], held=((T, 1),))
    assert (moved.state, moved.assigned) == (MemberState.STABLE, {T: {1: 4}})


def test_a_topic_that_it_does_not_read_is_no_target() -> None:
    moved = step(member(assigned={T: {0: 2}}), {T: {0}, U: {0}}, reads=(U,), claimed=[])
    assert moved.assigned == {U: {0: 4}}


def test_a_changed_subscription_takes_away_before_there_is_a_new_target() -> None:
    there = member(member_epoch=4, assigned={T: {0: 2}, U: {0: 2}})
    moved = step(there, {T: {0}, U: {0}}, reads=(U,), changed=True)
    assert (moved.state, moved.assigned, moved.revoking) == (
        MemberState.UNREVOKED_PARTITIONS,
        {U: {0: 2}},
        {T: {0: 2}},
    )
    gone = step(there, {T: {0}, U: {0}}, reads=(U,), changed=True, claimed=[(U, [0])])
    assert (gone.state, gone.assigned, gone.revoking) == (MemberState.STABLE, {U: {0: 2}}, {})
    assert step(there, {T: {0}, U: {0}}, changed=True) is there


def test_a_changed_subscription_adds_to_what_is_being_given_up() -> None:
    giving = member(
        state=MemberState.UNREVOKED_PARTITIONS, assigned={T: {0: 2}, U: {0: 2}}, revoking={T: {1: 2}}
    )
    moved = step(giving, {T: {0}}, reads=(U,), changed=True)
    assert (moved.assigned, moved.revoking) == ({U: {0: 2}}, {T: {0: 2, 1: 2}})


def test_a_member_in_a_state_of_another_time_must_begin_anew() -> None:
    strange = member(state=MemberState.UNKNOWN, assigned={T: {0: 2}})
    for claimed in (None, [(T, [0])]):
        with pytest.raises(KafkaError) as fault:
            step(strange, {T: {0}}, claimed=claimed)
        assert fault.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert step(strange, {T: {0}}, claimed=[]).state is MemberState.STABLE


def test_claims() -> None:
    owned = {T: {0: 1, 1: 1}}
    assert claims_only([], owned)
    assert claims_only([(T, [1])], owned)
    assert not claims_only([(T, [2])], owned)
    assert not claims_only([(U, [0])], owned)
    assert not claims_only(None, owned)
    assert claims_any([(T, [2, 1])], owned)
    assert not claims_any([(T, [2]), (U, [0])], owned)
    assert claims_any(None, owned)
