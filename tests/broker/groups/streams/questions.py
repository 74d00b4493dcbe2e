"""Questions about streams groups that Kafka's classes and ours can both answer, drawn at random.

A question is what ``compat/streams/judge/Judge.java`` reads from a line, and an answer is what it prints.
"""

import random
from collections.abc import Mapping
from typing import Any

from broker.groups.streams.assignor import TaskMember, TaskProblem, assign_sticky
from broker.groups.streams.configured import ConfiguredSubtopology, InternalTopic, configure
from broker.groups.streams.describing import describe_configured, describe_told
from broker.groups.streams.tasks import Tasks
from broker.groups.streams.topology import required_topics, stored_topology
from protocol.errors import KafkaError
from protocol.messages.streams_group_heartbeat import (
    CopartitionGroup,
    KeyValue,
    Subtopology,
    TopicInfo,
    Topology,
)
from protocol.schema import Struct

JsonObject = dict[str, Any]

_LOG = {"log": InternalTopic("log", 1, 0, {})}

PARTITIONS_MAX = 9


def random_group(chance: random.Random) -> JsonObject:
    """A group that needs an assignment: mostly one that had one, and has changed a little."""
    size = 8 if chance.random() < 0.05 else 1
    subtopologies = {}
    for number in range(chance.randint(1, 4 * size)):
        name = chance.choice((str(number), f"part-{number}"))
        subtopologies[name] = [chance.randint(1, PARTITIONS_MAX), chance.random() < 0.6]
    processes = [_random_id(chance) for _ in range(chance.randint(1, 7 * size))]
    replicas = chance.choice((0, 0, 1, 1, 2, 3))
    members = [_member(chance, chance.choice(processes)) for _ in range(chance.randint(1, 9 * size))]
    question: JsonObject = {"subtopologies": subtopologies, "replicas": replicas, "members": members}
    if chance.random() < 0.8:
        for member, had in zip(members, answer_group(question).values(), strict=True):
            member["active"], member["standby"] = had
        if chance.random() < 0.5:
            _mix_up(chance, members)
        for _ in range(chance.randint(0, 3)):
            _change(chance, question, processes)
    for member in members:
        if chance.random() < 0.4:
            member["offsets"] = {
                name: [
                    [partition, chance.choice((0, 5, 5, 1 << 40))]
                    for partition in range(count)
                    if chance.random() < 0.4
                ]
                for name, (count, has_state) in question["subtopologies"].items()
                if has_state
            }
    return question


def _member(chance: random.Random, process_id: str) -> JsonObject:
    return {"id": _random_id(chance), "process": process_id, "active": {}, "standby": {}, "offsets": {}}


def _random_id(chance: random.Random) -> str:
    return f"{chance.getrandbits(64):016x}"


def _mix_up(chance: random.Random, members: list[JsonObject]) -> None:
    """Let tasks lie as no assignor would put them."""
    for kind in ("active", "standby"):
        tasks = [(name, partition) for of in members for name, ps in of[kind].items() for partition in ps]
        for member in members:
            member[kind] = {}
        for name, partition in tasks:
            partitions = chance.choice(members)[kind].setdefault(name, [])
            if partition not in partitions:
                partitions.append(partition)


def _change(chance: random.Random, question: JsonObject, processes: list[str]) -> None:
    members: list[JsonObject] = question["members"]
    match chance.randrange(6):
        case 0 if len(members) > 1:
            members.remove(chance.choice(members))
        case 1:
            members.append(_member(chance, chance.choice([*processes, _random_id(chance)])))
        case 2:
            question["replicas"] = chance.randint(0, 3)
        case 3:
            name = chance.choice(list(question["subtopologies"]))
            question["subtopologies"][name][0] = chance.randint(1, PARTITIONS_MAX)
        case 4:
            question["subtopologies"][f"new-{chance.randrange(100)}"] = [chance.randint(1, 4), True]
        case _:
            member = chance.choice(members)
            member["active"], member["standby"] = {}, member["active"]


def answer_group(question: JsonObject) -> JsonObject:
    """What our assignor says."""
    members = {
        member["id"]: TaskMember(
            member["process"],
            {name: frozenset(of) for name, of in member["active"].items()},
            {name: frozenset(of) for name, of in member["standby"].items()},
            {name: dict(of) for name, of in member["offsets"].items()},
        )
        for member in question["members"]
    }
    subtopologies = {
        name: ConfiguredSubtopology(count, {"in"}, {}, frozenset(), _LOG if has_state else {})
        for name, (count, has_state) in question["subtopologies"].items()
    }
    assigned = assign_sticky(TaskProblem(members, subtopologies, question["replicas"]))
    return {
        member_id: [_told(assigned[member_id].active), _told(assigned[member_id].standby)]
        for member_id in members
    }


def _told(tasks: Tasks) -> JsonObject:
    return {name: sorted(partitions) for name, partitions in sorted(tasks.items())}


def random_topology(chance: random.Random) -> JsonObject:
    """An application, and the topics that there are; often something is wrong with one of them."""
    wrong = chance.choice((0.0, 0.0, 0.02, 0.1))
    names = [f"in{number}" for number in range(5)]
    same = chance.randint(1, 6)
    counts = {
        name: chance.randint(1, 6) if chance.random() < 2 * wrong else same
        for name in names
        if chance.random() >= wrong
    }
    subtopologies = []
    unread = [f"app-{number}-repartition" for number in range(6)]
    unwritten = list(unread)
    for number in range(chance.randint(1, 12 if chance.random() < 0.05 else 5)):
        sources = chance.sample(names, chance.choice((1, 1, 2, 3)))
        repartitioned = [name for name in unread if name not in unwritten and chance.random() < 0.5]
        if (repartitioned and chance.random() < 0.5) or chance.random() < wrong:
            sources = []
        sinks = [name for name in unwritten if chance.random() < 0.4]
        if unread and chance.random() < wrong:
            repartitioned += chance.sample(unread, 1)
        unread = [name for name in unread if name not in repartitioned]
        unwritten = [name for name in unwritten if name not in sinks]
        subtopologies.append(_random_subtopology(chance, number, sources, repartitioned, sinks, same, wrong))
    for of in subtopologies:
        for topic in (*of["repartitionSourceTopics"], *of["stateChangelogTopics"]):
            if chance.random() < 0.4:
                counts[topic["name"]] = chance.randint(1, 6) if chance.random() < wrong else same
    chance.shuffle(subtopologies)
    epoch = -1 if chance.random() < wrong / 10 else chance.randrange(3)
    return {"topology": _heartbeat(epoch, subtopologies), "topics": counts}


def _random_subtopology(
    chance: random.Random,
    number: int,
    sources: list[str],
    repartitioned: list[str],
    sinks: list[str],
    same: int,
    wrong: float,
) -> JsonObject:
    def topic(name: str, partitions: int) -> JsonObject:
        keys = chance.sample(("cleanup.policy", "segment.bytes", "retention.ms"), chance.choice((0, 1, 3)))
        if chance.random() < wrong / 10:
            keys += keys[:1]
        return {
            "name": chance.choice(("a b", "", "x" * 250)) if chance.random() < wrong / 10 else name,
            "partitions": partitions,
            "replicationFactor": chance.choice((0, 0, 1, 3)),
            "topicConfigs": [{"key": key, "value": str(chance.randrange(9))} for key in keys],
        }

    repartition_topics = []
    for name in repartitioned:
        partitions = same if chance.random() < 0.2 else 0
        if chance.random() < wrong:
            partitions = chance.choice((3, 5, -1))
        repartition_topics.append(topic(name, partitions))
    if repartition_topics and chance.random() < wrong / 10:
        repartition_topics.append(repartition_topics[0])
    groups = []
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        read = [place for place in range(len(sources)) if chance.random() < 0.7]
        read_again = [place for place in range(len(repartitioned)) if chance.random() < 0.8]
        if chance.random() < wrong / 4:
            read.append(chance.choice((-1, len(sources))))
        groups.append({"sourceTopics": read, "sourceTopicRegex": [], "repartitionSourceTopics": read_again})
    changelogs = [f"app-{number}-{store}-changelog" for store in range(chance.choice((0, 0, 1, 2, 4)))]
    return {
        "subtopologyId": "0"
        if chance.random() < wrong / 10
        else chance.choice((str(number), f"sub{number}")),
        "sourceTopics": sources,
        "sourceTopicRegex": [],
        "stateChangelogTopics": [topic(name, 0) for name in changelogs],
        "repartitionSinkTopics": sinks,
        "repartitionSourceTopics": repartition_topics,
        "copartitionGroups": groups,
    }


def _heartbeat(epoch: int, subtopologies: list[JsonObject]) -> JsonObject:
    """A whole request, since that is what Kafka can read from JSON."""
    return {
        "groupId": "g",
        "memberId": "m",
        "memberEpoch": 0,
        "endpointInformationEpoch": 0,
        "instanceId": None,
        "rackId": None,
        "rebalanceTimeoutMs": 1,
        "topology": {"epoch": epoch, "subtopologies": subtopologies},
        "activeTasks": [],
        "standbyTasks": [],
        "warmupTasks": [],
        "processId": "p",
        "userEndpoint": None,
        "clientTags": None,
        "taskOffsets": None,
        "taskEndOffsets": None,
        "shutdownApplication": False,
    }


def answer_topology(question: JsonObject) -> JsonObject:
    """What our configuration of topologies says."""
    topics: Mapping[str, int] = question["topics"]
    try:
        topology = stored_topology(_topology(question["topology"]["topology"]))
        configured = configure(topology, 7, topics.get)
    except KafkaError as error:
        return {"error": [error.code, error.message]}
    answer: JsonObject = {"required": sorted(required_topics(topology))}
    if configured.problem is not None:
        answer["problem"] = [*configured.problem]
    answer["missing"] = [
        [topic.name, topic.partition_count, topic.replication_factor or -1, dict(topic.configs)]
        for topic in configured.missing_topics.values()
    ]
    subtopologies = configured.subtopologies
    if subtopologies is not None:
        answer["subtopologies"] = [
            [name, of.task_count, of.is_stateful] for name, of in subtopologies.items()
        ]
    answer["configured"] = _as_json(describe_configured(configured.epoch, subtopologies or {}))
    answer["stored"] = _as_json(describe_told(topology))
    return answer


def _topology(told: JsonObject) -> Topology:
    return Topology(
        epoch=told["epoch"],
        subtopologies=[
            Subtopology(
                subtopology_id=of["subtopologyId"],
                source_topics=of["sourceTopics"],
                state_changelog_topics=list(map(_topic, of["stateChangelogTopics"])),
                repartition_sink_topics=of["repartitionSinkTopics"],
                repartition_source_topics=list(map(_topic, of["repartitionSourceTopics"])),
                copartition_groups=[
                    CopartitionGroup(
                        source_topics=group["sourceTopics"],
                        repartition_source_topics=group["repartitionSourceTopics"],
                    )
                    for group in of["copartitionGroups"]
                ],
            )
            for of in told["subtopologies"]
        ],
    )


def _topic(told: JsonObject) -> TopicInfo:
    return TopicInfo(
        name=told["name"],
        partitions=told["partitions"],
        replication_factor=told["replicationFactor"],
        topic_configs=[KeyValue(key=config["key"], value=config["value"]) for config in told["topicConfigs"]],
    )


def _as_json(value: object) -> Any:
    """A struct as Kafka writes it in JSON."""
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    if isinstance(value, Struct):
        return {_in_camel_case(of.name): _as_json(getattr(value, of.name)) for of in value.declared_fields}
    return value


def _in_camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
