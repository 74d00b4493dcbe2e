"""Streams groups (KIP-1071): StreamsGroupHeartbeat and StreamsGroupDescribe, from the first member on."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from compat.oracle.conversation import conversation
from compat.oracle.conversations.consumer_groups import configure
from compat.oracle.preparing import Topic
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from protocol.messages.streams_group_heartbeat import (
    CopartitionGroup,
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)

BEAT: Final = ApiKey.STREAMS_GROUP_HEARTBEAT
DESCRIBE: Final = ApiKey.STREAMS_GROUP_DESCRIBE

FIRST, SECOND, THIRD = "first", "second", "third"
"""Members choose their ids."""

Tasks = Mapping[str, Sequence[int]]
"""Partitions by subtopology."""

Offsets = Sequence[tuple[str, int, int]]


class Owned:
    """What a member says that it works on."""

    def __init__(self, active: Tasks | None, standby: Tasks | None, warmup: Tasks | None) -> None:
        self.active, self.standby, self.warmup = active, standby, warmup


def owned(active: Tasks | None = None, standby: Tasks | None = None, warmup: Tasks | None = None) -> Owned:
    return Owned(active or {}, standby or {}, warmup or {})


def _task_ids(tasks: Tasks | None) -> list[TaskIds] | None:
    if tasks is None:
        return None
    return [TaskIds(subtopology_id=name, partitions=list(of)) for name, of in tasks.items()]


def _task_offsets(offsets: Offsets | None) -> list[TaskOffset] | None:
    if offsets is None:
        return None
    return [TaskOffset(subtopology_id=name, partition=number, offset=at) for name, number, at in offsets]


def beat(
    group: str,
    member: str,
    epoch: int,
    *,
    owns: Owned | None = None,
    topology: Topology | None = None,
    timeout_ms: int = -1,
    instance: str | None = None,
    rack: str | None = None,
    process: str | None = None,
    endpoint: tuple[str, int] | None = None,
    endpoint_epoch: int = 0,
    tags: Mapping[str, str] | None = None,
    offsets: Offsets | None = None,
    end_offsets: Offsets | None = None,
    shutdown: bool = False,
) -> StreamsGroupHeartbeatRequest:
    return StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        endpoint_information_epoch=endpoint_epoch,
        instance_id=instance,
        rack_id=rack,
        rebalance_timeout_ms=timeout_ms,
        topology=topology,
        active_tasks=None if owns is None else _task_ids(owns.active),
        standby_tasks=None if owns is None else _task_ids(owns.standby),
        warmup_tasks=None if owns is None else _task_ids(owns.warmup),
        process_id=process,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=None if tags is None else [KeyValue(key=key, value=value) for key, value in tags.items()],
        task_offsets=_task_offsets(offsets),
        task_end_offsets=_task_offsets(end_offsets),
        shutdown_application=shutdown,
    )


def join(
    group: str, member: str, topology: Topology, *, timeout_ms: int = 60_000, **how: Any
) -> StreamsGroupHeartbeatRequest:
    """Each member is a process of its own unless one is named."""
    how.setdefault("process", f"process of {member}")
    how.setdefault("owns", owned())
    return beat(group, member, 0, topology=topology, timeout_ms=timeout_ms, **how)


def leave(
    group: str, member: str, *, epoch: int = -1, instance: str | None = None
) -> StreamsGroupHeartbeatRequest:
    return beat(group, member, epoch, instance=instance)


def describe(*groups: str, **what: bool) -> StreamsGroupDescribeRequest:
    return StreamsGroupDescribeRequest(
        group_ids=list(groups), include_authorized_operations=what.get("with_operations", False)
    )


def internal(name: str, partitions: int = 0, replicas: int = 0, **settings: str) -> TopicInfo:
    """A topic of the application's own.  Settings are given as ``retention_ms``."""
    configs = [KeyValue(key=key.replace("_", "."), value=value) for key, value in settings.items()]
    return TopicInfo(name=name, partitions=partitions, replication_factor=replicas, topic_configs=configs)


def part(
    name: str,
    *sources: Topic | str,
    reads: Sequence[TopicInfo] = (),
    writes: Sequence[str] = (),
    stores: Sequence[TopicInfo] = (),
    together: Sequence[tuple[Sequence[int], Sequence[int]]] = (),
    regexes: Sequence[str] = (),
) -> Subtopology:
    """A subtopology; ``reads`` and ``writes`` are topics for repartitioning, ``stores`` changelogs."""
    return Subtopology(
        subtopology_id=name,
        source_topics=[topic.name if isinstance(topic, Topic) else topic for topic in sources],
        source_topic_regex=list(regexes),
        state_changelog_topics=list(stores),
        repartition_sink_topics=list(writes),
        repartition_source_topics=list(reads),
        copartition_groups=[
            CopartitionGroup(source_topics=list(external), repartition_source_topics=list(own))
            for external, own in together
        ],
    )


def topology(*parts: Subtopology, epoch: int = 0) -> Topology:
    return Topology(epoch=epoch, subtopologies=list(parts))


def reading(*topics: Topic | str, epoch: int = 0) -> Topology:
    """An application that only reads."""
    return topology(part("0", *topics), epoch=epoch)


def keeping(talk: Talk, topic: Topic, count: int, name: str = "log") -> Topology:
    """An application with state, whose changelog is there already."""
    log = talk.topic(name, count, cleanup_policy="compact")
    talk.settle()
    return topology(part("0", topic, stores=[internal(log.name)]))


def at_once(talk: Talk, name: str = "g", **settings: str) -> str:
    """The name of a group in which every change brings about a new assignment at once."""
    group = talk.name(name)
    times = {"streams_initial_rebalance_delay_ms": "0", "streams_assignment_interval_ms": "0"}
    for key, value in (times | settings).items():
        configure(talk, group, key.replace("_", "."), value)
    return group


def until_made(talk: Talk, *names: str) -> None:
    """Wait until topics are there that the broker makes by itself."""
    talk.until(
        MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
        ),
        lambda answer: not any(topic.error_code for topic in answer.topics),
    )
    talk.settle()


@conversation(BEAT, DESCRIBE)
def one_member(talk: Talk) -> None:
    topic = talk.topic("t", 3)
    group = at_once(talk)
    app = reading(topic)
    talk.ask("join", join(group, FIRST, app))
    talk.ask("heartbeat", beat(group, FIRST, 2))
    talk.ask("heartbeat with what it owns", beat(group, FIRST, 2, owns=owned({"0": [0, 1, 2]})))
    full = beat(group, FIRST, 2, owns=owned({"0": [0, 1, 2]}), timeout_ms=60_000, process="process of first")
    talk.ask("a full heartbeat", full)
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.ask("join again", join(group, FIRST, app))
    talk.ask("of a newer epoch", beat(group, FIRST, 9))
    talk.ask("of an older epoch", beat(group, FIRST, 1))
    talk.ask("of an older epoch, with nothing", beat(group, FIRST, 1, owns=owned()))
    talk.ask("join again from elsewhere", join(group, FIRST, app, rack="elsewhere", timeout_ms=50_000))
    talk.ask("of a stranger", beat(group, SECOND, 3))
    talk.ask("with another timeout", beat(group, FIRST, 3, timeout_ms=40_000))
    talk.ask("from another rack", beat(group, FIRST, 3, rack="here"))
    talk.ask("heartbeat after that", beat(group, FIRST, 4))
    talk.ask("from another process", beat(group, FIRST, 4, process="another"))
    talk.ask("with tags", beat(group, FIRST, 5, tags={"zone": "a", "rack": "b"}))
    talk.ask("with the same tags", beat(group, FIRST, 6, tags={"rack": "b", "zone": "a"}))
    talk.ask("without tags", beat(group, FIRST, 6, tags={}))
    talk.ask("under a name it did not have", beat(group, FIRST, 7, instance="i"))
    talk.settle_groups()
    talk.ask("describe what has changed", describe(group))
    talk.ask("a stranger leaves", leave(group, SECOND))
    talk.ask("leave", leave(group, FIRST))
    talk.ask("heartbeat after leaving", beat(group, FIRST, 7))
    talk.ask("leave again", leave(group, FIRST))
    talk.settle_groups()
    talk.ask("describe an empty group", describe(group))
    talk.ask("join an empty group", join(group, SECOND, app))


@conversation(BEAT)
def requests_that_make_no_sense(talk: Talk) -> None:
    topic = talk.topic("t")
    group = talk.name("g")
    app = reading(topic)
    talk.ask("a member without id", beat(group, "", 5))
    talk.ask("a member without id leaves", leave(group, ""))
    talk.ask("a member without id, but with a name, goes", leave(group, "", instance="i", epoch=-2))
    talk.ask("an id of blanks", join(group, " ", app))
    talk.ask("no group", join("", FIRST, app))
    talk.ask("a group of blanks", join(" \t", FIRST, app))
    talk.ask("an empty name", join(group, FIRST, app, instance=""))
    talk.ask("an empty rack", join(group, FIRST, app, rack=""))
    talk.ask("no timeout", beat(group, FIRST, 0, topology=app, owns=owned()))
    talk.ask("a negative timeout", join(group, "m1", app, timeout_ms=-2))
    talk.ask("a timeout of 0", join(group, "m2", app, timeout_ms=0))
    talk.ask("nothing said about tasks", join(group, "m3", app, owns=None))
    talk.ask("tasks owned before", join(group, FIRST, app, owns=owned({"0": [0]})))
    talk.ask("standby tasks owned before", join(group, FIRST, app, owns=owned(standby={"0": [0]})))
    talk.ask("warm-up tasks owned before", join(group, FIRST, app, owns=owned(warmup={"0": [0]})))
    talk.ask("no topology", beat(group, FIRST, 0, owns=owned(), timeout_ms=1000))
    talk.ask("no process", join(group, "m4", app, process=None))
    talk.ask("go without a name", leave(group, FIRST, epoch=-2))
    talk.ask("an epoch of -3", beat(group, FIRST, -3))
    talk.ask("an epoch of -3, with a topology", beat(group, FIRST, -3, topology=app))
    talk.ask("a topology later on", beat(group, FIRST, 1, topology=app))
    talk.ask("a topology when leaving", beat(group, FIRST, -1, topology=app))
    talk.ask("active tasks alone", beat(group, FIRST, 1, owns=Owned({}, None, None)))
    talk.ask("standby tasks alone", beat(group, FIRST, 1, owns=Owned(None, {}, None)))
    talk.ask("no warm-up tasks", beat(group, FIRST, 1, owns=Owned({}, {}, None)))
    talk.ask("heartbeat in an unknown group", beat(talk.name("h"), FIRST, 1))
    talk.ask("leave an unknown group", leave(talk.name("h"), FIRST))
    talk.ask("go from an unknown group", leave(talk.name("h"), FIRST, epoch=-2, instance="i"))
    talk.ask(
        "heartbeat with a regular expression",
        beat(group, "", -3, topology=topology(part("0", regexes=["a"]))),
    )
    talk.ask("everything wrong", beat("", "", 0, instance="", rack=""))


@conversation(BEAT, DESCRIBE)
def two_members(talk: Talk) -> None:
    """Tasks change hands: the one gives up first, and the other waits until it has."""
    topic = talk.topic("t", 4)
    group = at_once(talk)
    app = reading(topic)
    talk.ask("the first joins", join(group, FIRST, app))
    talk.ask("the second joins", join(group, SECOND, app), by=SECOND)
    talk.settle_groups()
    talk.ask("describe what the first has to give up", describe(group))
    talk.ask("the second waits", beat(group, SECOND, 3), by=SECOND)
    revoked = talk.ask("the first hears of it", beat(group, FIRST, 2))
    talk.settle_groups()
    talk.ask("describe what is being given up", describe(group))
    talk.ask("the first says nothing", beat(group, FIRST, 2))
    talk.ask("the first still has it", beat(group, FIRST, 2, owns=owned({"0": [0, 1, 2, 3]})))
    kept = owned({"0": revoked.active_tasks[0].partitions} if revoked.active_tasks else None)
    talk.ask("the first has given it up", beat(group, FIRST, 2, owns=kept))
    talk.ask("its answer was lost", beat(group, FIRST, 2, owns=kept))
    talk.ask("its answer was lost, and it says nothing", beat(group, FIRST, 2))
    talk.ask("its answer was lost, and it has more", beat(group, FIRST, 2, owns=owned({"0": [0, 1, 2, 3]})))
    talk.ask("its answer was lost, and it has less", beat(group, FIRST, 2, owns=owned()))
    talk.ask("the first goes on", beat(group, FIRST, 3))
    talk.ask("the second gets it", beat(group, SECOND, 3), by=SECOND)
    talk.settle_groups()
    talk.ask("describe when all is done", describe(group))
    talk.ask("the first leaves", leave(group, FIRST))
    talk.ask("the second gets the rest", beat(group, SECOND, 3), by=SECOND)
    talk.ask("the first comes back", join(group, FIRST, app))
    talk.ask("the second gives up at once", beat(group, SECOND, 4, owns=owned()), by=SECOND)
    talk.ask("the first asks", beat(group, FIRST, 5))
    talk.settle_groups()
    talk.ask("describe at last", describe(group))


@conversation(BEAT, DESCRIBE)
def three_members(talk: Talk) -> None:
    """A full group, whose members join and leave while others have not finished."""
    topic = talk.topic("t", 5)
    group = at_once(talk)
    app = reading(topic)
    talk.ask("the first joins", join(group, FIRST, app))
    talk.ask("the second joins", join(group, SECOND, app), by=SECOND)
    talk.ask("the third joins", join(group, THIRD, app), by=THIRD)
    talk.ask("one too many joins", join(group, "fourth", app), by="fourth")
    talk.ask("one with a name joins, too", join(group, "fourth", app, instance="i"), by="fourth")
    talk.ask("a member joins again", join(group, SECOND, app), by=SECOND)
    talk.ask("the first hears of it", beat(group, FIRST, 2))
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.ask("the first gives up", beat(group, FIRST, 2, owns=owned({"0": [0, 1]})))
    talk.ask("the second asks", beat(group, SECOND, 4), by=SECOND)
    talk.ask("the third asks", beat(group, THIRD, 4), by=THIRD)
    talk.ask("the second leaves", leave(group, SECOND), by=SECOND)
    talk.ask("the third asks again", beat(group, THIRD, 4), by=THIRD)
    talk.ask("the first asks again", beat(group, FIRST, 4))
    talk.settle_groups()
    talk.ask("describe who is left", describe(group))


@conversation(BEAT, DESCRIBE)
def members_of_one_process(talk: Talk) -> None:
    topic = talk.topic("t", 4)
    group = at_once(talk, streams_num_standby_replicas="1")
    app = keeping(talk, topic, 4)
    talk.ask("the first joins", join(group, FIRST, app, process="one"))
    talk.ask("the second joins", join(group, SECOND, app, process="one"), by=SECOND)
    talk.ask("the first hears of it", beat(group, FIRST, 2))
    talk.ask("the first gives up", beat(group, FIRST, 2, owns=owned({"0": [0, 1]})))
    talk.ask("the second gets it", beat(group, SECOND, 3), by=SECOND)
    talk.ask("another process joins", join(group, THIRD, app, process="two"), by=THIRD)
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.ask("the first hears of the third", beat(group, FIRST, 3, owns=owned({"0": [0, 1]})))
    talk.ask("the second hears of the third", beat(group, SECOND, 3, owns=owned({"0": [2, 3]})), by=SECOND)
    talk.ask("the first gives one up", beat(group, FIRST, 3, owns=owned({"0": [0]})))
    talk.ask("the second gives one up", beat(group, SECOND, 3, owns=owned({"0": [2]})), by=SECOND)
    talk.ask("the first goes on", beat(group, FIRST, 4))
    talk.ask("the second goes on", beat(group, SECOND, 4), by=SECOND)
    talk.ask("the third gets it", beat(group, THIRD, 4), by=THIRD)
    talk.settle_groups()
    talk.ask("describe when all is done", describe(group))
    talk.ask("the first takes the other process", beat(group, FIRST, 4, process="two"))
    talk.ask("the second hears of that", beat(group, SECOND, 4), by=SECOND)
    talk.ask("the third hears of that", beat(group, THIRD, 4), by=THIRD)
    talk.settle_groups()
    talk.ask("describe two processes", describe(group))


@conversation(BEAT, DESCRIBE)
def standby_tasks(talk: Talk) -> None:
    """They become active ones where their member leaves, and active ones become standby."""
    topic = talk.topic("t", 2)
    group = at_once(talk, streams_num_standby_replicas="1")
    app = keeping(talk, topic, 2)
    talk.ask("the first joins", join(group, FIRST, app))
    talk.ask("the second joins", join(group, SECOND, app), by=SECOND)
    talk.ask("the first hears of it", beat(group, FIRST, 2))
    talk.settle_groups()
    talk.ask("describe what the first has to give up", describe(group))
    talk.ask("the first gives up", beat(group, FIRST, 2, owns=owned({"0": [0]})))
    talk.ask("the first takes it as a standby", beat(group, FIRST, 3))
    talk.ask("the second gets it", beat(group, SECOND, 3), by=SECOND)
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.ask("the third joins", join(group, THIRD, app), by=THIRD)
    talk.ask("the first hears of the third", beat(group, FIRST, 3))
    talk.ask("the second hears of the third", beat(group, SECOND, 3), by=SECOND)
    talk.ask("the third hears of itself", beat(group, THIRD, 4), by=THIRD)
    talk.settle_groups()
    talk.ask("describe three", describe(group))
    talk.ask("the first leaves", leave(group, FIRST))
    talk.ask("the second is promoted", beat(group, SECOND, 4), by=SECOND)
    talk.ask("the third is promoted", beat(group, THIRD, 4), by=THIRD)
    talk.settle_groups()
    talk.ask("describe two", describe(group))
    talk.ask("the third leaves", leave(group, THIRD), by=THIRD)
    talk.ask("the second has everything", beat(group, SECOND, 5), by=SECOND)
    talk.ask("the second goes on", beat(group, SECOND, 6), by=SECOND)
    talk.settle_groups()
    talk.ask("describe one", describe(group))
    configure(talk, group, "streams.num.standby.replicas", "0")
    talk.ask("there are no standby tasks any more", beat(group, SECOND, 6), by=SECOND)


@conversation(BEAT, DESCRIBE)
def state_that_is_reported(talk: Talk) -> None:
    """A member that has more of a task's state gets the task."""
    topic = talk.topic("t", 2)
    group = at_once(talk)
    app = keeping(talk, topic, 2)
    talk.ask("the first joins", join(group, FIRST, app, offsets=[("0", 0, 7)], end_offsets=[("0", 0, 9)]))
    talk.ask("it says more", beat(group, FIRST, 2, offsets=[("0", 1, 5), ("0", 0, 8)]))
    talk.ask("it says where they end", beat(group, FIRST, 2, end_offsets=[("0", 1, 50)]))
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.ask("the same twice", beat(group, FIRST, 2, offsets=[("0", 1, 5), ("0", 1, 6)]))
    talk.ask("the same end twice", beat(group, FIRST, 2, end_offsets=[("0", 1, 5), ("0", 1, 6)]))
    talk.ask("of what is not there", beat(group, FIRST, 2, offsets=[("7", 1, -5), ("0", 9, -1)]))
    talk.settle_groups()
    talk.ask("describe what is not there", describe(group))
    talk.ask("nothing", beat(group, FIRST, 2, offsets=[], end_offsets=[]))
    talk.settle_groups()
    talk.ask("describe nothing", describe(group))
    talk.ask("the first leaves", leave(group, FIRST))
    talk.ask("the second joins", join(group, SECOND, app, offsets=[("0", 1, 7)]), by=SECOND)
    talk.ask("the third joins", join(group, THIRD, app, offsets=[("0", 0, 7), ("0", 1, 8)]), by=THIRD)
    talk.ask("the second hears of it", beat(group, SECOND, 4), by=SECOND)
    talk.settle_groups()
    talk.ask("describe both", describe(group))


@conversation(BEAT, DESCRIBE)
def assignments_that_wait(talk: Talk) -> None:
    """For more members in the beginning, and for time to pass afterwards (KIP-1263)."""
    topic = talk.topic("t", 2)
    app = reading(topic)
    patient = talk.name("patient")
    talk.ask("a group that waits for members", join(patient, FIRST, app))
    talk.ask("which has one", beat(patient, FIRST, 1))
    talk.ask("a second one", join(patient, SECOND, app), by=SECOND)
    talk.settle_groups()
    talk.ask("describe the group that waits", describe(patient))
    talk.ask("the first leaves it", leave(patient, FIRST))
    talk.ask("the second leaves it", leave(patient, SECOND), by=SECOND)
    talk.settle_groups()
    talk.ask("describe the group that waited", describe(patient))
    quick = at_once(talk, "quick", streams_initial_rebalance_delay_ms="50")
    talk.ask("a group that waits for a moment", join(quick, FIRST, app))
    talk.until(beat(quick, FIRST, 1), lambda answer: answer.active_tasks is not None)
    talk.ask("after that moment", beat(quick, FIRST, 1, owns=owned()))
    talk.ask("with the new epoch", beat(quick, FIRST, 3))
    slow = at_once(talk, "slow", streams_assignment_interval_ms="15000")
    talk.ask("the first joins the slow one", join(slow, FIRST, app))
    talk.ask("the second joins the slow one", join(slow, SECOND, app), by=SECOND)
    talk.ask("the first asks", beat(slow, FIRST, 2))
    talk.ask("the second asks", beat(slow, SECOND, 2), by=SECOND)
    talk.settle_groups()
    talk.ask("describe the slow one", describe(slow))
    talk.ask("the second leaves", leave(slow, SECOND), by=SECOND)
    talk.ask("the first leaves", leave(slow, FIRST))
    talk.ask("another need not wait", join(slow, THIRD, app), by=THIRD)
