"""Random lives of streams groups: members come, work, change, go and are fenced, as a seed has it."""

import random
from typing import Any, Final

from compat.oracle.conversation import conversation
from compat.oracle.conversations.consumer_groups import configure, grow
from compat.oracle.conversations.streams_groups import (
    BEAT,
    DESCRIBE,
    Owned,
    at_once,
    beat,
    describe,
    internal,
    join,
    leave,
    part,
    topology,
    until_made,
)
from compat.oracle.talk import Talk
from protocol.messages.streams_group_heartbeat import TaskIds, Topology

STEPS: Final = 45
MEMBERS: Final = ("anna", "bert", "cleo")
"""As many as fit into a group."""

PROCESSES: Final = ("p", "q", "r")


class Life:
    """One member as it sees itself, which is not always how the group does."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.name = name
        self.epoch = 0
        self.instance = f"instance of {name}" if chance.random() < 0.4 else None
        self.process = chance.choice(PROCESSES)
        self.tasks = Owned({}, {}, {})
        self.endpoint = (name, 1) if chance.random() < 0.3 else None
        self.endpoint_epoch = -1

    def hear(self, answer: Any) -> None:
        """Take over what the group says; whoever is fenced begins anew."""
        if answer.error_code:
            self.epoch = 0
            self.tasks = Owned({}, {}, {})
            return
        self.epoch = max(answer.member_epoch, 0)
        self.endpoint_epoch = answer.endpoint_information_epoch
        if answer.active_tasks is not None:
            self.tasks = Owned(*map(_tasks, (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks)))


def _tasks(told: list[TaskIds]) -> dict[str, list[int]]:
    return {each.subtopology_id: list(each.partitions) for each in told}


def live(talk: Talk, seed: int) -> None:
    chance = random.Random(seed)
    source, other = talk.topic("t", chance.randint(1, 4)), talk.topic("u", chance.randint(1, 4))
    again, log = talk.name("again"), talk.name("log")
    app = topology(
        part("0", source, writes=[again]),
        part("1", reads=[internal(again)], stores=[internal(log)]),
        part("2", other),
    )
    group = at_once(talk, streams_num_standby_replicas=str(chance.randrange(3)))
    lives = {name: Life(name, chance) for name in MEMBERS}
    first = lives[chance.choice(MEMBERS)]
    first.hear(talk.ask("0: the first joins", _joining(group, first, app), by=first.name))
    until_made(talk, again, log)
    for number in range(1, STEPS):
        who = lives[chance.choice(MEMBERS)]
        _step(talk, group, app, number, who, chance)
        if number % 20 == 10 and chance.random() < 0.7:
            configure(talk, group, "streams.num.standby.replicas", str(chance.randrange(3)))
        if number == 35:
            grow(talk, other, 6)
        if number % 15 == 0:
            talk.settle_groups()
            talk.ask(f"{number}: describe", describe(group))


def _joining(group: str, who: Life, app: Topology) -> Any:
    return join(group, who.name, app, instance=who.instance, process=who.process, endpoint=who.endpoint)


def _step(talk: Talk, group: str, app: Topology, number: int, who: Life, chance: random.Random) -> None:
    how: dict[str, Any] = {"instance": who.instance, "endpoint_epoch": who.endpoint_epoch}
    if who.epoch == 0:
        if chance.random() < 0.2:
            who.process = chance.choice(PROCESSES)
        who.hear(talk.ask(f"{number}: {who.name} joins", _joining(group, who, app), by=who.name))
        return
    match chance.randrange(10):
        case 0:
            epoch = -2 if who.instance is not None and chance.random() < 0.7 else -1
            going = leave(group, who.name, epoch=epoch, instance=who.instance)
            talk.ask(f"{number}: {who.name} goes with {epoch}", going, by=who.name)
            who.epoch = 0
            if epoch == -2 and chance.random() < 0.5:
                who.name += "'"  # it comes back with another id
            return
        case 1:
            label, request = "joins again", _joining(group, who, app)
        case 2:
            label, request = "says nothing", beat(group, who.name, who.epoch, **how)
        case 3:
            label, request = "has nothing", beat(group, who.name, who.epoch, owns=Owned({}, {}, {}), **how)
        case 4:
            offsets = [("1", partition, chance.choice((0, 9, 99))) for partition in range(2)]
            label = "reports"
            request = beat(group, who.name, who.epoch, owns=who.tasks, offsets=offsets, **how)
        case _:
            label, request = "works", beat(group, who.name, who.epoch, owns=who.tasks, **how)
    who.hear(talk.ask(f"{number}: {who.name} {label}", request, by=who.name))


@conversation(BEAT, DESCRIBE, rounds="1")
def the_first_life(talk: Talk) -> None:
    live(talk, 1)


@conversation(BEAT, DESCRIBE, rounds="1")
def the_second_life(talk: Talk) -> None:
    live(talk, 2)


@conversation(BEAT, DESCRIBE, rounds="1")
def the_third_life(talk: Talk) -> None:
    live(talk, 3)


@conversation(BEAT, DESCRIBE, rounds="1")
def the_fourth_life(talk: Talk) -> None:
    live(talk, 4)
