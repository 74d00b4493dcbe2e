"""Steps of one member towards its target, drawn at random: questions for Kafka's classes and ours.

See ``questions.py``; a task with processes that have it is written ``[subtopology, partition, process]``.
"""

import random
from collections.abc import Mapping
from typing import Any

from broker.groups.streams.member import StreamsMember, StreamsMemberState
from broker.groups.streams.reconciliation import Holders, ProcessesOf, TaskReconciler
from broker.groups.streams.tasks import OwnedTasks, TaskSets
from protocol.errors import KafkaError
from tests.broker.groups.streams.questions import JsonObject

SUBTOPOLOGIES = ("0", "1")
PARTITIONS = 4
PROCESSES = ("mine", "other")
ROLES = 3


def random_step(chance: random.Random) -> JsonObject:
    """A member that has some tasks, should have others, and is not alone."""
    roles = _roles(chance)
    assigned: list[Any] = [{}, roles[1], roles[2]]
    assigned[0] = {
        name: [[partition, chance.randrange(1, 5)] for partition in of] for name, of in roles[0].items()
    }
    state = chance.choice((1, 1, 2, 2, 3, 127))
    revoking: list[Any] = [{}, {}, {}]
    if state == 2:
        going = _roles(chance)
        revoking = [
            {name: [[partition, 1] for partition in of] for name, of in going[0].items()},
            *going[1:],
        ]
    epoch = chance.randrange(1, 5)
    has = [_merged(assigned[role], revoking[role]) for role in range(ROLES)]
    claimed = [_some(chance, tasks) for tasks in has] if chance.random() < 0.8 else None
    return {
        "process": "mine",
        "state": state,
        "epoch": epoch,
        "previous": epoch - 1,
        "assigned": assigned,
        "revoking": revoking,
        "target_epoch": chance.choice((epoch, epoch + 1, epoch + 2)),
        "target": _roles(chance),
        "claimed": claimed,
        "held": [_held(chance, tasks) for tasks in has],
    }


def _roles(chance: random.Random) -> list[dict[str, list[int]]]:
    """Tasks of each role; mostly each task in one role only."""
    roles: list[dict[str, list[int]]] = [{}, {}, {}]
    for name in SUBTOPOLOGIES:
        for partition in range(PARTITIONS):
            for role in chance.sample(range(ROLES), chance.choice((0, 1, 1, 1, 2))):
                roles[role].setdefault(name, []).append(partition)
    return roles


def _held(chance: random.Random, has: Mapping[str, list[int]]) -> list[list[Any]]:
    """Who has which tasks in one role: the member what it has, and somebody a few of the others."""
    held: list[list[Any]] = [[name, partition, "mine"] for name, of in has.items() for partition in of]
    for name in SUBTOPOLOGIES:
        for partition in range(PARTITIONS):
            if partition not in has.get(name, ()) and chance.random() < 0.2:
                held.append([name, partition, chance.choice(PROCESSES)])
    return held


def _keys(tasks: Mapping[str, Any]) -> dict[str, list[int]]:
    return {name: [each[0] if isinstance(each, list) else each for each in of] for name, of in tasks.items()}


def _merged(some: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, list[int]]:
    left, right = _keys(some), _keys(others)
    return {name: sorted({*left.get(name, ()), *right.get(name, ())}) for name in {**left, **right}}


def _some(chance: random.Random, tasks: Mapping[str, list[int]]) -> dict[str, list[int]]:
    kept = {name: [each for each in of if chance.random() < 0.5] for name, of in tasks.items()}
    return {name: of for name, of in kept.items() if of}


def answer_step(question: JsonObject) -> JsonObject:
    """What our reconciler makes of it."""
    member = StreamsMember(
        "member",
        process_id=question["process"],
        member_epoch=question["epoch"],
        previous_member_epoch=question["previous"],
        state=StreamsMemberState(question["state"]),
        assigned=_owned(question["assigned"]),
        revoking=_owned(question["revoking"]),
    )
    claimed = question["claimed"]
    reconciler = TaskReconciler(
        member,
        target_epoch=question["target_epoch"],
        target=_sets(question["target"]),
        claimed=None if claimed is None else _sets(claimed),
        holders=Holders(*(_processes(held) for held in question["held"])),
    )
    try:
        moved = reconciler.step()
    except KafkaError as error:
        return {"error": [int(error.code), error.message]}
    return {
        "epoch": moved.member_epoch,
        "previous": moved.previous_member_epoch,
        "state": int(moved.state),
        "assigned": _told(moved.assigned),
        "revoking": _told(moved.revoking),
    }


def _sets(told: Any) -> TaskSets:
    return TaskSets(*({name: frozenset(of) for name, of in tasks.items()} for tasks in told))


def _owned(told: Any) -> OwnedTasks:
    active = {name: dict(of) for name, of in told[0].items()}
    return OwnedTasks(active, *({name: frozenset(of) for name, of in tasks.items()} for tasks in told[1:]))


def _processes(held: Any) -> ProcessesOf:
    def processes(subtopology: str, partition: int) -> set[str]:
        return {process for *task, process in held if task == [subtopology, partition]}

    return processes


def _told(owned: OwnedTasks) -> list[Any]:
    active = {name: [[each, of[each]] for each in sorted(of)] for name, of in sorted(owned.active.items())}
    copies = ({name: sorted(of) for name, of in sorted(tasks.items())} for tasks in owned[1:])
    return [active, *copies]
