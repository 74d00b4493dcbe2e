"""Members of streams groups: names, endpoints, tags, and how they are told to stop."""

from compat.oracle.conversation import conversation
from compat.oracle.conversations.consumer_groups import configure
from compat.oracle.conversations.streams_groups import (
    BEAT,
    DESCRIBE,
    FIRST,
    SECOND,
    THIRD,
    at_once,
    beat,
    describe,
    join,
    keeping,
    leave,
    owned,
    part,
    reading,
    topology,
)
from compat.oracle.talk import Talk


@conversation(BEAT, DESCRIBE)
def static_members(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    group = at_once(talk)
    app = reading(topic)
    talk.ask("join", join(group, FIRST, app, instance="i"))
    talk.ask("heartbeat", beat(group, FIRST, 2, instance="i"))
    talk.ask("heartbeat without the name", beat(group, FIRST, 2))
    talk.ask("join under a name that is taken", join(group, SECOND, app, instance="i"), by=SECOND)
    talk.ask("heartbeat under another name", beat(group, FIRST, 2, instance="j"))
    talk.ask("heartbeat of another id", beat(group, SECOND, 2, instance="i"), by=SECOND)
    talk.ask("another id goes", leave(group, SECOND, instance="i", epoch=-2), by=SECOND)
    talk.ask("another id leaves", leave(group, SECOND, instance="i"), by=SECOND)
    talk.ask("somebody goes whom nobody knows", leave(group, FIRST, instance="j", epoch=-2))
    talk.ask("somebody leaves whom nobody knows", leave(group, FIRST, instance="j"))
    talk.ask("go for a while", leave(group, FIRST, instance="i", epoch=-2))
    talk.settle_groups()
    talk.ask("describe a group whose member has gone", describe(group))
    talk.ask("heartbeat of the one that has gone", beat(group, FIRST, 2, instance="i"))
    talk.ask("go again", leave(group, FIRST, instance="i", epoch=-2))
    talk.ask("come back under a new id", join(group, SECOND, app, instance="i"), by=SECOND)
    talk.ask("heartbeat of the new id", beat(group, SECOND, 2, instance="i"), by=SECOND)
    talk.ask("heartbeat of the old id", beat(group, FIRST, 2, instance="i"))
    talk.ask("heartbeat of the old id without the name", beat(group, FIRST, 2))
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.ask("go once more", leave(group, SECOND, instance="i", epoch=-2), by=SECOND)
    talk.ask("come back under the same id", join(group, SECOND, app, instance="i"), by=SECOND)
    talk.ask("go, and run another process", leave(group, SECOND, instance="i", epoch=-2), by=SECOND)
    talk.ask("come back as another", join(group, THIRD, app, instance="i", process="other"), by=THIRD)
    talk.ask("heartbeat of the other", beat(group, THIRD, 2, instance="i"), by=THIRD)
    talk.settle_groups()
    talk.ask("describe the other", describe(group))
    talk.ask("leave for good", leave(group, THIRD, instance="i"), by=THIRD)
    talk.settle_groups()
    talk.ask("describe nobody", describe(group))


@conversation(BEAT, DESCRIBE)
def static_members_with_others(talk: Talk) -> None:
    topic = talk.topic("t", 4)
    group = at_once(talk, streams_num_standby_replicas="1")
    app = keeping(talk, topic, 4)
    talk.ask("the first joins", join(group, FIRST, app, instance="i"))
    talk.ask("the second joins", join(group, SECOND, app, instance="j"), by=SECOND)
    talk.ask("the first gives up", beat(group, FIRST, 2, instance="i", owns=owned({"0": [0, 1]})))
    talk.ask("and goes", leave(group, FIRST, instance="i", epoch=-2))
    talk.ask("the second asks", beat(group, SECOND, 3, instance="j"), by=SECOND)
    talk.settle_groups()
    talk.ask("describe while one is away", describe(group))
    talk.ask("the third comes in its place", join(group, THIRD, app, instance="i"), by=THIRD)
    talk.ask("the third goes on", beat(group, THIRD, 3, instance="i"), by=THIRD)
    talk.ask("the second goes on", beat(group, SECOND, 3, instance="j"), by=SECOND)
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.ask("a third name", join(group, "fourth", app, instance="k"))
    talk.ask("one name too many", join(group, "fifth", app, instance="l"))
    talk.ask("the third takes another name", join(group, THIRD, app, instance="m"), by=THIRD)
    talk.ask("and goes by it", leave(group, THIRD, instance="m", epoch=-2), by=THIRD)
    talk.settle_groups()
    talk.ask("describe the one with another name", describe(group))


@conversation(BEAT, DESCRIBE)
def a_member_that_does_not_give_up(talk: Talk) -> None:
    """It is written off after the time that it has asked for."""
    topic = talk.topic("t", 2)
    group = at_once(talk)
    app = reading(topic)
    talk.ask("the slow one joins", join(group, FIRST, app, timeout_ms=150))
    talk.ask("another joins", join(group, SECOND, app), by=SECOND)
    talk.ask("the slow one hears of it", beat(group, FIRST, 2))
    talk.until(beat(group, SECOND, 3, owns=owned()), lambda answer: answer.member_epoch == 4)
    talk.ask("the slow one is too late", beat(group, FIRST, 2, owns=owned({"0": [0]})))
    talk.settle_groups()
    talk.ask("describe", describe(group))


@conversation(BEAT, DESCRIBE)
def applications_that_are_shut_down(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    group = at_once(talk)
    app = reading(topic)
    talk.ask("the first joins", join(group, FIRST, app))
    talk.ask("the second joins", join(group, SECOND, app), by=SECOND)
    talk.ask("the second wants to stop", beat(group, SECOND, 3, shutdown=True), by=SECOND)
    talk.ask("the first is told", beat(group, FIRST, 2))
    talk.ask("the first wants to stop, too", beat(group, FIRST, 2, shutdown=True))
    talk.ask("a third joins", join(group, THIRD, app), by=THIRD)
    talk.ask("the third leaves", leave(group, THIRD), by=THIRD)
    talk.ask("the second leaves", leave(group, SECOND), by=SECOND)
    talk.ask("the first is still told", beat(group, FIRST, 2))
    talk.ask("the first leaves", leave(group, FIRST))
    talk.ask("it begins again", join(group, FIRST, app))
    talk.ask("leave and stop", beat(group, FIRST, -1, shutdown=True))
    talk.ask("it begins once more", join(group, FIRST, app))
    talk.ask("a second one", join(group, SECOND, app), by=SECOND)
    talk.ask("the second leaves and stops", beat(group, SECOND, -1, shutdown=True), by=SECOND)
    talk.ask("the first hears of that", beat(group, FIRST, 9))
    talk.ask("join and stop", join(group, SECOND, app, shutdown=True), by=SECOND)
    talk.settle_groups()
    talk.ask("describe", describe(group))


@conversation(BEAT, DESCRIBE)
def endpoints(talk: Talk) -> None:
    """Everybody is told who can be asked about which partitions."""
    topic, other = talk.topic("t", 4), talk.topic("u", 2)
    group = at_once(talk, streams_num_standby_replicas="1")
    log = keeping(talk, topic, 4).subtopologies[0].state_changelog_topics
    app = topology(part("0", topic, other, stores=log))
    talk.ask("the first joins", join(group, FIRST, app, endpoint=("a", 1)))
    talk.ask("heartbeat", beat(group, FIRST, 2))
    talk.ask("heartbeat of that epoch", beat(group, FIRST, 2, endpoint_epoch=1))
    talk.ask("heartbeat of the next epoch", beat(group, FIRST, 2, endpoint_epoch=2))
    talk.ask("heartbeat of a newer epoch", beat(group, FIRST, 2, endpoint_epoch=9))
    talk.ask("the same endpoint", beat(group, FIRST, 2, endpoint=("a", 1), endpoint_epoch=1))
    talk.ask("another endpoint", beat(group, FIRST, 2, endpoint=("a", 65535), endpoint_epoch=1))
    talk.ask("the second joins", join(group, SECOND, app, endpoint=("b", 2)), by=SECOND)
    talk.ask("the first gives up", beat(group, FIRST, 3, owns=owned({"0": [0, 1]}), endpoint_epoch=2))
    talk.ask("the first goes on", beat(group, FIRST, 4, endpoint_epoch=3))
    talk.ask("the second gets it", beat(group, SECOND, 4, endpoint_epoch=3), by=SECOND)
    talk.ask("the second knows it", beat(group, SECOND, 4, endpoint_epoch=4), by=SECOND)
    talk.ask("a third without joins", join(group, THIRD, app), by=THIRD)
    talk.ask("the third asks", beat(group, THIRD, 5, endpoint_epoch=1), by=THIRD)
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.ask("the second leaves", leave(group, SECOND), by=SECOND)
    talk.ask("the third asks again", beat(group, THIRD, 5), by=THIRD)
    talk.ask("the first asks again", beat(group, FIRST, 4))
    talk.ask("the first joins again, without", join(group, FIRST, app))
    talk.ask("the first asks once more", beat(group, FIRST, 7))
    talk.ask("the first has one again", beat(group, FIRST, 7, endpoint=("a", 0)))


@conversation(BEAT, DESCRIBE)
def endpoints_before_there_are_tasks(talk: Talk) -> None:
    topic = talk.name("later")
    group = at_once(talk)
    talk.ask("join", join(group, FIRST, reading(topic), endpoint=("a", 1)))
    talk.ask("heartbeat", beat(group, FIRST, 2, endpoint_epoch=1))
    talk.ask("heartbeat of no epoch", beat(group, FIRST, 2))
    talk.topic("later", 2)
    talk.settle()
    talk.ask("when there are tasks", beat(group, FIRST, 2, endpoint_epoch=1))
    talk.ask("afterwards", beat(group, FIRST, 3))


@conversation(BEAT, DESCRIBE)
def tags_that_are_missing(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    group = at_once(talk, streams_rack_aware_assignment_tags="zone,cluster")
    app = reading(topic)
    talk.ask("join without tags", join(group, FIRST, app))
    talk.ask("heartbeat", beat(group, FIRST, 2))
    talk.ask("some of them", beat(group, FIRST, 2, tags={"zone": "a"}))
    talk.ask("with more", beat(group, FIRST, 3, tags={"zone": "a", "more": "b"}))
    talk.ask("all of them", beat(group, FIRST, 4, tags={"zone": "a", "cluster": "b"}))
    configure(talk, group, "streams.rack.aware.assignment.tags", "")
    talk.ask("when none is wanted", beat(group, FIRST, 5))
    talk.settle_groups()
    talk.ask("describe", describe(group))


@conversation(BEAT)
def tasks_that_are_not_there(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    group = at_once(talk)
    talk.ask("join", join(group, FIRST, reading(topic)))
    talk.ask("of another subtopology", beat(group, FIRST, 2, owns=owned({"1": [0]})))
    talk.ask("of too high a number", beat(group, FIRST, 2, owns=owned({"0": [0, 2]})))
    talk.ask("of a negative number", beat(group, FIRST, 2, owns=owned({"0": [-1]})))
    talk.ask("of a subtopology without numbers", beat(group, FIRST, 2, owns=owned({"1": []})))
    talk.ask("standby of too high a number", beat(group, FIRST, 2, owns=owned(standby={"0": [5]})))
    talk.ask("warm-up of too high a number", beat(group, FIRST, 2, owns=owned(warmup={"0": [5]})))
    talk.ask("standby of what has no state", beat(group, FIRST, 2, owns=owned(standby={"0": [0]})))
    talk.ask("the same twice", beat(group, FIRST, 2, owns=owned({"0": [1, 1]})))
    talk.ask("and it goes on", beat(group, FIRST, 2))
