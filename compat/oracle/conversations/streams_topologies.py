"""What applications of streams groups are made of: topics that are there, are made, or are wrong."""

import time
from typing import Final

from compat.oracle.conversation import conversation
from compat.oracle.conversations.consumer_groups import grow
from compat.oracle.conversations.streams_groups import (
    BEAT,
    DESCRIBE,
    FIRST,
    SECOND,
    at_once,
    beat,
    describe,
    internal,
    join,
    leave,
    owned,
    part,
    reading,
    topology,
    until_made,
)
from compat.oracle.talk import Talk
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.streams_group_heartbeat import Topology

TOPIC: Final = 2
"""The type of resource under which a topic has its settings."""


def settings_of(topic: str, *keys: str) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(
        resource_type=TOPIC, resource_name=topic, configuration_keys=list(keys)
    )
    return DescribeConfigsRequest(resources=[resource])


def topics(*names: str) -> MetadataRequest:
    wanted = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=wanted, allow_auto_topic_creation=False)


def until_told(talk: Talk, group: str, text: str) -> int:
    """Send heartbeats of the first member until a status says so; returns its epoch."""
    epoch = 2
    for _ in range(100):
        answer = talk.quietly(beat(group, FIRST, epoch))
        epoch = int(answer.member_epoch)
        if any(text in status.status_detail for status in answer.status):
            return epoch
        time.sleep(0.05)
    raise AssertionError(f"{group} is never told: {text}")


@conversation(BEAT, DESCRIBE)
def topics_that_are_missing(talk: Talk) -> None:
    there = talk.topic("there", 1)
    group = at_once(talk)
    names = [talk.name(name) for name in ("d", "b", "c", "a", "e")]
    talk.ask("join", join(group, FIRST, reading(there, *names)))
    talk.ask("heartbeat", beat(group, FIRST, 2))
    talk.settle_groups()
    talk.ask("describe", describe(group))
    for name in ("b", "a", "e"):
        talk.topic(name, 1)
    talk.settle()
    talk.ask("two are missing", beat(group, FIRST, 2))
    talk.topic("c", 3)
    talk.settle()
    talk.ask("one is missing", beat(group, FIRST, 3))
    talk.settle_groups()
    talk.ask("describe when one is missing", describe(group))
    last = talk.topic("d", 2)
    talk.settle()
    talk.ask("all are there", beat(group, FIRST, 4))
    talk.ask("which it owns", beat(group, FIRST, 5, owns=owned({"0": [0, 1, 2]})))
    talk.settle_groups()
    talk.ask("describe when all are there", describe(group))
    talk.delete_topic(last)
    talk.ask("one is missing again", beat(group, FIRST, 5))
    talk.settle_groups()
    talk.ask("describe when one is missing again", describe(group))
    talk.ask("what it owned", beat(group, FIRST, 5, owns=owned()))
    talk.ask("afterwards", beat(group, FIRST, 6))


@conversation(BEAT, DESCRIBE)
def topics_that_grow(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    group = at_once(talk)
    talk.ask("join", join(group, FIRST, reading(topic)))
    grow(talk, topic, 3)
    talk.ask("it has grown", beat(group, FIRST, 2))
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.topic("other", 1)
    talk.settle()
    talk.ask("another one is new", beat(group, FIRST, 3))


@conversation(BEAT, DESCRIBE)
def topics_that_are_made(talk: Talk) -> None:
    """A word count: its topics for repartitioning, and its changelog."""
    lines = talk.topic("lines", 2)
    group = at_once(talk)
    again, log = talk.name("again-repartition"), talk.name("counts-changelog")
    app = topology(
        part("0", lines, writes=[again]),
        part(
            "1",
            reads=[internal(again, cleanup_policy="delete", retention_ms="-1", segment_bytes="52428800")],
            stores=[internal(log, cleanup_policy="compact")],
        ),
    )
    talk.ask("join", join(group, FIRST, app))
    until_made(talk, again, log)
    talk.ask("heartbeat when they are made", beat(group, FIRST, 2))
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.ask("the topics", topics(again, log))
    talk.ask("settings of one", settings_of(again, "cleanup.policy", "retention.ms", "segment.bytes"))
    talk.ask("settings of the other", settings_of(log, "cleanup.policy", "retention.ms"))
    talk.ask("another joins", join(group, SECOND, app), by=SECOND)
    talk.settle_groups()
    talk.ask("describe both", describe(group))
    grow(talk, lines, 3)
    talk.ask("what is read has grown", beat(group, FIRST, 3))
    talk.settle_groups()
    talk.ask("describe what has grown", describe(group))


@conversation(BEAT, DESCRIBE)
def topics_with_their_own_numbers(talk: Talk) -> None:
    source, other = talk.topic("t", 3), talk.topic("u", 3)
    group = at_once(talk)
    fixed, free, log = talk.name("fixed"), talk.name("free"), talk.name("log")
    app = topology(
        part("0", source, writes=[fixed]),
        part("1", other, writes=[free]),
        part("2", reads=[internal(fixed, 5, 1)], stores=[internal(log, 0, 1)], together=[([], [0])]),
        part("3", source, reads=[internal(free)], together=[([0], [0])]),
    )
    talk.ask("join", join(group, FIRST, app))
    until_made(talk, fixed, free, log)
    talk.ask("heartbeat when they are made", beat(group, FIRST, 2))
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.ask("the topics", topics(fixed, free, log))


@conversation(BEAT, DESCRIBE)
def topics_that_cannot_be_made(talk: Talk) -> None:
    """The first answer does not know of it yet, and later ones say why."""
    source = talk.topic("t", 1)

    def needing(label: str, name: str, replicas: int = 0, **settings: str) -> str:
        group = at_once(talk, f"group of {name}")
        log = internal(talk.name(name), 0, replicas, **settings)
        talk.ask(label, join(group, FIRST, topology(part("0", source, stores=[log]))))
        epoch = until_told(talk, group, "Creation failed")
        talk.ask(f"{label}, afterwards", beat(group, FIRST, epoch))
        return group

    replicas = needing("too many replicas", "replicas", 3)
    needing("an unknown setting", "setting", no_such="1")
    needing("a wrong value", "value", cleanup_policy="none")
    needing("a wrong number", "number", retention_ms="a")
    needing("a negative number of replicas", "negative", -3)
    other = topology(part("0", source, stores=[internal(talk.name("replicas"))]))
    talk.ask("the first of these from another group", join(at_once(talk, "other"), FIRST, other))
    talk.settle_groups()
    talk.ask("describe", describe(replicas))


@conversation(BEAT, DESCRIBE)
def topics_that_do_not_fit(talk: Talk) -> None:
    two, three = talk.topic("two", 2), talk.topic("three", 3)
    group = at_once(talk)
    app = topology(part("0", two, three, together=[([0, 1], [])]))
    talk.ask("sources", join(group, FIRST, app))
    talk.ask("sources, afterwards", beat(group, FIRST, 2))
    talk.settle_groups()
    talk.ask("describe", describe(group))
    grow(talk, two, 3)
    talk.ask("sources that fit now", beat(group, FIRST, 2))
    log, again = talk.topic("log", 1), talk.topic("again", 1)
    talk.settle()
    storing = topology(part("0", three, stores=[internal(log.name)]))
    talk.ask("a changelog that is there", join(at_once(talk, "h"), FIRST, storing))
    repartitioning = topology(
        part("0", three, writes=[again.name]),
        part("1", reads=[internal(again.name)]),
    )
    talk.ask("a topic to repartition that is there", join(at_once(talk, "i"), FIRST, repartitioning))
    wish = talk.name("wish")
    fixed = topology(
        part("0", three, writes=[wish]),
        part("1", three, reads=[internal(wish, 2)], together=[([0], [0])]),
    )
    talk.ask("a topic with a number of its own", join(at_once(talk, "j"), FIRST, fixed))
    other = talk.name("other")
    both = topology(
        part("0", three, writes=[wish, other]),
        part("1", reads=[internal(wish, 2), internal(other, 4)], together=[([], [0, 1])]),
    )
    talk.ask("two topics with numbers of their own", join(at_once(talk, "k"), FIRST, both))


@conversation(BEAT, DESCRIBE)
def topologies_that_make_no_sense(talk: Talk) -> None:
    source = talk.topic("t", 2)
    group = at_once(talk)
    log, again = talk.name("log"), talk.name("again")

    def said(label: str, app: Topology) -> None:
        talk.ask(label, join(group, FIRST, app))

    said("a changelog with a number", topology(part("0", source, stores=[internal(log, 3)])))
    said("a regular expression", topology(part("0", source, regexes=["a.*"])))
    said("a negative epoch", topology(part("0", source), epoch=-1))
    said("one id twice", topology(part("0", source), part("0", source)))
    said("nothing to read", topology(part("0")))
    said("nothing to read, but to keep", topology(part("0", stores=[internal(log)])))
    said("a loop", topology(part("0", reads=[internal(again)], writes=[again])))
    said("nobody writes", topology(part("0", source, reads=[internal(again)])))
    said("a source beyond the last", topology(part("0", source, together=[([1], [])])))
    said("a source before the first", topology(part("0", source, together=[([-1], [])])))
    said("nothing together", topology(part("0", together=[([], [])])))
    bad_name = part("0", source, stores=[internal("not a name")])
    said("a changelog whose name is wrong", topology(bad_name))
    said("a changelog without a name", topology(part("0", source, stores=[internal("")])))
    said("a changelog twice", topology(part("0", source, stores=[internal(log), internal(log)])))
    said(
        "a negative number",
        topology(part("0", source, writes=[again]), part("1", reads=[internal(again, -1)])),
    )
    said("a source without a name", topology(part("0", "")))
    said("a source whose name is wrong", topology(part("0", "not a name")))
    said("several names that are wrong", topology(part("0", "?", "!", source, writes=["?", "a/b"])))
    said("a sink whose name is wrong", topology(part("0", source, writes=["a/b"])))
    said("a wrong name, and a loop", topology(part("0", "?", reads=[internal(again)], writes=[again])))
    said("a wrong name, and a number", topology(part("0", "?", stores=[internal(log, 3)])))
    said("a wrong name, and an expression", topology(part("0", "?", regexes=["a"])))
    talk.settle_groups()
    talk.ask("describe", describe(group))
    nothing = at_once(talk, "nothing")
    talk.ask("no parts", join(nothing, FIRST, topology()))
    talk.ask("no parts, afterwards", beat(nothing, FIRST, 2))
    talk.settle_groups()
    talk.ask("describe nothing", describe(nothing))
    twice = at_once(talk, "twice")
    talk.ask("a source twice", join(twice, FIRST, topology(part("0", source, source), part("1", source))))
    talk.settle_groups()
    talk.ask("describe a source twice", describe(twice))
    unnamed = at_once(talk, "unnamed")
    talk.ask("a part without a name", join(unnamed, FIRST, topology(part("", source))))
    own = at_once(talk, "own")
    talk.ask("one of Kafka's own topics", join(own, FIRST, reading("__consumer_offsets", source)))
    talk.ask("others of them", join(own, FIRST, reading("__transaction_state", "__share_group_state")))
    talk.ask("its metadata", join(own, FIRST, reading("__cluster_metadata")))
    kept = part("0", source, writes=["__transaction_state"], stores=[internal("__consumer_offsets")])
    talk.ask("one to write to, and to keep", join(own, FIRST, topology(kept)))
    talk.ask("one of them, and a wrong name", join(own, FIRST, reading("__consumer_offsets", "?")))


@conversation(BEAT, DESCRIBE)
def topologies_that_change(talk: Talk) -> None:
    one, other = talk.topic("one", 2), talk.topic("other", 1)
    group = at_once(talk)
    first = topology(part("0", one), part("1", other), epoch=3)
    talk.ask("join", join(group, FIRST, first))
    turned = topology(part("1", other), part("0", one), epoch=3)
    talk.ask("in another order", join(group, SECOND, turned), by=SECOND)
    changed = topology(part("0", one), part("1", other, one), epoch=3)
    talk.ask("another one of the same epoch", join(group, SECOND, changed), by=SECOND)
    newer = topology(part("0", one), part("1", other), epoch=4)
    talk.ask("the same of a newer epoch", join(group, SECOND, newer), by=SECOND)
    older = topology(part("0", one), epoch=2)
    talk.ask("one of an older epoch", join(group, SECOND, older), by=SECOND)
    talk.ask("the older one goes on", beat(group, SECOND, 4), by=SECOND)
    talk.ask("the older one goes on again", beat(group, SECOND, 5), by=SECOND)
    talk.ask("the first goes on", beat(group, FIRST, 2))
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.ask("the second comes up to date", join(group, SECOND, first), by=SECOND)
    talk.ask("the second leaves", leave(group, SECOND), by=SECOND)
    talk.ask("the first leaves", leave(group, FIRST))
    talk.settle_groups()
    talk.ask("describe an empty group", describe(group))
    talk.ask("an empty group keeps its topology", join(group, FIRST, reading(one)))
    talk.ask("also from a newer one", join(group, FIRST, reading(one, epoch=4)))
