"""One step of one member towards its target: every state, and tasks that change their role."""

from typing import Any

import pytest

from broker.groups.streams.member import StreamsMember, StreamsMemberState
from broker.groups.streams.reconciliation import Holders, ProcessesOf, TaskReconciler
from broker.groups.streams.tasks import OwnedTasks, TaskSets
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from tests.broker.groups.streams.asking import recorded
from tests.broker.groups.streams.steps import answer_step

MINE, OTHER = "mine", "other"
Held = dict[int, str]
"""The process that has a partition of the only subtopology."""


def member(**how: Any) -> StreamsMember:
    return StreamsMember("m", process_id=MINE, member_epoch=3, previous_member_epoch=2)._replace(**how)


def owned(active: dict[int, int] | None = None, standby: set[int] | None = None) -> OwnedTasks:
    return OwnedTasks({"0": active} if active else {}, {"0": standby} if standby else {})


def tasks(active: set[int] | None = None, standby: set[int] | None = None) -> TaskSets:
    return TaskSets({"0": active} if active else {}, {"0": standby} if standby else {})


def step(
    of: StreamsMember,
    target: TaskSets,
    *,
    claimed: TaskSets | None = None,
    active: Held | None = None,
    standby: Held | None = None,
) -> StreamsMember:
    def processes(held: Held) -> ProcessesOf:
        return lambda _, partition: [held[partition]] if partition in held else []

    holders = Holders(processes(active or {}), processes(standby or {}), processes({}))
    return TaskReconciler(of, target_epoch=4, target=target, claimed=claimed, holders=holders).step()


def test_what_nobody_has_is_given_at_once_in_the_new_epoch() -> None:
    moved = step(member(assigned=owned({0: 2})), tasks({0, 1}, {2}))
    assert (moved.member_epoch, moved.previous_member_epoch) == (4, 3)
    assert moved.assigned == owned({0: 2, 1: 4}, {2})
    assert moved.state is StreamsMemberState.STABLE


def test_what_it_must_give_up_keeps_it_in_its_epoch() -> None:
    moved = step(member(assigned=owned({0: 2, 1: 2})), tasks({0, 3}))
    assert (moved.member_epoch, moved.assigned, moved.revoking) == (3, owned({0: 2}), owned({1: 2}))
    assert moved.state is StreamsMemberState.UNREVOKED_TASKS
    assert step(moved, tasks({0, 3}), claimed=tasks({0, 1})) is moved, "it has it still"
    freed = step(moved, tasks({0, 3}), claimed=tasks({0}))
    assert (freed.member_epoch, freed.assigned, freed.revoking) == (4, owned({0: 2, 3: 4}), owned())


def test_what_others_have_is_waited_for() -> None:
    moved = step(member(), tasks({0, 1}), active={1: OTHER})
    assert (moved.assigned, moved.state) == (owned({0: 4}), StreamsMemberState.UNRELEASED_TASKS)
    assert step(moved, tasks({0, 1}), active={0: MINE}).assigned == owned({0: 4, 1: 4})


def test_a_process_has_a_task_once() -> None:
    assert step(member(), tasks(standby={0}), active={0: MINE}).state is StreamsMemberState.UNRELEASED_TASKS
    assert step(member(), tasks({0}), standby={0: MINE}).state is StreamsMemberState.UNRELEASED_TASKS
    assert step(member(), tasks(standby={0}), active={0: OTHER}).assigned == owned(standby={0})
    assert step(member(), tasks({0}), standby={0: OTHER}).assigned == owned({0: 4})


def test_a_copy_is_kept_until_its_member_works_on_the_task_itself() -> None:
    has_copy = member(assigned=owned(standby={0}))
    waiting = step(has_copy, tasks({0}), active={0: OTHER}, standby={0: MINE}, claimed=tasks(standby={0}))
    assert (waiting.assigned, waiting.revoking) == (owned(standby={0}), owned())
    assert waiting.state is StreamsMemberState.UNRELEASED_TASKS
    promoted = step(waiting, tasks({0}), standby={0: MINE}, claimed=tasks(standby={0}))
    assert (promoted.assigned, promoted.state) == (owned({0: 4}), StreamsMemberState.STABLE)


def test_who_gives_up_a_task_keeps_its_state_at_once() -> None:
    demoted = step(member(assigned=owned({0: 2})), tasks(standby={0}), active={0: MINE}, claimed=tasks({0}))
    assert (demoted.assigned, demoted.revoking) == (owned(standby={0}), owned({0: 2}))


def test_who_is_in_an_unknown_state_begins_anew() -> None:
    lost = member(state=StreamsMemberState.UNKNOWN, assigned=owned({0: 2}))
    for claimed in (None, tasks({0})):
        with pytest.raises(KafkaError) as fenced:
            step(lost, tasks({1}), claimed=claimed)
        assert fenced.value.code == ErrorCode.FENCED_MEMBER_EPOCH
    moved = step(lost, tasks({1}), claimed=tasks())
    assert (moved.member_epoch, moved.assigned) == (4, owned({1: 4}))


def test_steps_are_those_of_kafka_s_own_class() -> None:
    for question, answer in recorded("steps"):
        assert answer_step(question) == answer, question
