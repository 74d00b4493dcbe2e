"""Tasks go where Kafka's assignor sends them, and it keeps what it promises."""

import random
from itertools import chain

from broker.groups.streams.assignor import TaskMember, TaskProblem, assign_sticky
from broker.groups.streams.configured import ConfiguredSubtopology, InternalTopic
from tests.broker.groups.streams.asking import recorded
from tests.broker.groups.streams.questions import answer_group, random_group

CHANGELOG = {"log": InternalTopic("log", 1, 0, {})}


def subtopology(task_count: int, *, is_stateful: bool = True) -> ConfiguredSubtopology:
    changelogs = CHANGELOG if is_stateful else {}
    return ConfiguredSubtopology(task_count, frozenset(("in",)), {}, frozenset(), changelogs)


def test_kafka_assigns_the_same() -> None:
    for question, answer in recorded("groups"):
        assert answer_group(question) == answer, question


def test_a_group_without_members_gets_nothing() -> None:
    assert assign_sticky(TaskProblem({}, {"0": subtopology(3)}, 1)) == {}


def test_standby_tasks_are_for_state_only_and_never_beside_their_task() -> None:
    members = {
        f"m{number}": TaskMember(f"p{number // 2}", active={}, standby={}, task_offsets={})
        for number in range(4)
    }
    parts = {"0": subtopology(2), "1": subtopology(2, is_stateful=False)}
    assigned = assign_sticky(TaskProblem(members, parts, 2))
    standby = [tasks.standby for tasks in assigned.values()]
    assert set(chain.from_iterable(standby)) == {"0"}
    for number in (0, 2):
        of_process = [assigned[f"m{number}"], assigned[f"m{number + 1}"]]
        tasks = sorted(chain.from_iterable(tasks.get("0", ()) for member in of_process for tasks in member))
        assert tasks == [0, 1]  # each task once, with two processes for three copies


def test_a_task_goes_to_who_has_most_of_its_state() -> None:
    told = {"a": 5, "b": 7, "c": 6}
    members = {
        name: TaskMember(name, active={}, standby={}, task_offsets={"0": {0: offset}})
        for name, offset in told.items()
    }
    assigned = assign_sticky(TaskProblem(members, {"0": subtopology(1)}, 0))
    assert {name: dict(tasks.active) for name, tasks in assigned.items()} == {
        "a": {},
        "b": {"0": {0}},
        "c": {},
    }


def test_every_task_has_one_owner_whatever_was_before(chance: random.Random) -> None:
    for _ in range(200):
        question = random_group(chance)
        given = [
            (name, partition)
            for active, _ in answer_group(question).values()
            for name, partitions in active.items()
            for partition in partitions
        ]
        wanted = [
            (name, partition)
            for name, (count, _) in question["subtopologies"].items()
            for partition in range(count)
        ]
        assert sorted(given) == sorted(wanted), question


def test_an_assignment_that_is_even_stays_as_it_is(chance: random.Random) -> None:
    for _ in range(100):
        question = random_group(chance)
        for member in question["members"]:
            member.update(active={}, standby={}, offsets={})
        question["replicas"] = 0
        first = answer_group(question)
        for member in question["members"]:
            member["active"], member["standby"] = first[member["id"]]
        assert answer_group(question) == first, question
