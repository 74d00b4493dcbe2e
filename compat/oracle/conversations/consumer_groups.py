"""Consumer groups (KIP-848): ConsumerGroupHeartbeat and ConsumerGroupDescribe, from the first member on."""

from collections.abc import Sequence
from typing import Any

from compat.oracle.conversation import conversation
from compat.oracle.preparing import Topic
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

BEAT = ApiKey.CONSUMER_GROUP_HEARTBEAT
DESCRIBE = ApiKey.CONSUMER_GROUP_DESCRIBE

FIRST, SECOND, THIRD = "first", "second", "third"
"""Members choose their ids."""

GROUP = 32
"""The type of resource under which a group has its settings."""

Owned = Sequence[tuple[Topic, Sequence[int]]]

REGEXES = "1+"
"""The versions in which members may subscribe with a regular expression."""


def beat(
    group: str,
    member: str,
    epoch: int,
    *,
    topics: Sequence[Topic | str] | None = None,
    regex: str | None = None,
    owned: Owned | None = None,
    timeout_ms: int = -1,
    instance: str | None = None,
    rack: str | None = None,
    assignor: str | None = None,
) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        instance_id=instance,
        rack_id=rack,
        rebalance_timeout_ms=timeout_ms,
        subscribed_topic_names=(
            None
            if topics is None
            else [topic.name if isinstance(topic, Topic) else topic for topic in topics]
        ),
        subscribed_topic_regex=regex,
        server_assignor=assignor,
        topic_partitions=(
            None
            if owned is None
            else [
                TopicPartitions(topic_id=topic.id, partitions=list(partitions)) for topic, partitions in owned
            ]
        ),
    )


def join(
    group: str, member: str, *topics: Topic | str, timeout_ms: int = 60_000, **how: Any
) -> ConsumerGroupHeartbeatRequest:
    if "regex" in how:
        return beat(group, member, 0, owned=(), timeout_ms=timeout_ms, **how)
    return beat(group, member, 0, topics=topics, owned=(), timeout_ms=timeout_ms, **how)


def leave(group: str, member: str, *, instance: str | None = None, epoch: int = -1) -> Any:
    return beat(group, member, epoch, instance=instance)


def describe(*groups: str, with_operations: bool = False) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=with_operations)


def configure(talk: Talk, group: str, name: str, value: str) -> None:
    """Give a group a setting of its own, and wait until the coordinator knows it."""
    change = AlterableConfig(name=name, value=value)
    resource = AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=[change])
    (changed,) = talk.quietly(IncrementalAlterConfigsRequest(resources=[resource])).responses
    assert not changed.error_code, changed
    talk.settle()


def at_once(talk: Talk, name: str = "g") -> str:
    """The name of a group in which every change brings about a new assignment at once."""
    group = talk.name(name)
    configure(talk, group, "consumer.assignment.interval.ms", "0")
    return group


def much_later(talk: Talk, name: str = "g") -> str:
    """The name of a group in which a second assignment has to wait for longer than the conversation."""
    group = talk.name(name)
    configure(talk, group, "consumer.assignment.interval.ms", "15000")
    return group


def grow(talk: Talk, topic: Topic, count: int) -> None:
    """Give a topic so many partitions."""
    wanted = CreatePartitionsTopic(name=topic.name, count=count, assignments=None)
    (grown,) = talk.quietly(CreatePartitionsRequest(topics=[wanted], timeout_ms=10_000)).results
    assert not grown.error_code, grown
    talk.settle()


@conversation(BEAT, DESCRIBE)
def one_member(talk: Talk) -> None:
    topic = talk.topic("t", 3)
    group = at_once(talk)
    talk.ask("join", join(group, FIRST, topic))
    talk.ask("heartbeat", beat(group, FIRST, 2))
    talk.ask("heartbeat with what it owns", beat(group, FIRST, 2, owned=[(topic, [0, 1, 2])]))
    full = beat(group, FIRST, 2, topics=[topic], owned=[(topic, [0, 1, 2])], timeout_ms=60_000)
    talk.ask("a full heartbeat", full)
    talk.ask("a full heartbeat without timeout", beat(group, FIRST, 2, topics=[topic], owned=()))
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.ask("join again", join(group, FIRST, topic))
    talk.ask("of a newer epoch", beat(group, FIRST, 3))
    talk.ask("of an older epoch", beat(group, FIRST, 1))
    talk.ask("of an older epoch, with nothing", beat(group, FIRST, 1, owned=()))
    talk.ask("of a stranger", beat(group, SECOND, 2))
    talk.ask("with another timeout", beat(group, FIRST, 2, timeout_ms=50_000))
    talk.ask("from another rack", beat(group, FIRST, 2, rack="elsewhere"))
    talk.ask("under a name it did not have", beat(group, FIRST, 2, instance="i"))
    talk.ask("a stranger leaves", leave(group, SECOND))
    talk.ask("leave", leave(group, FIRST))
    talk.ask("heartbeat after leaving", beat(group, FIRST, 2))
    talk.ask("leave again", leave(group, FIRST))
    talk.settle_groups()
    talk.ask("describe an empty group", describe(group))
    talk.ask("join an empty group", join(group, SECOND, topic))


@conversation(BEAT)
def requests_that_make_no_sense(talk: Talk) -> None:
    topic = talk.topic("t")
    group = talk.name("g")
    talk.ask("a member without id", beat(group, "", 5))
    talk.ask("a member without id leaves", leave(group, ""))
    talk.ask("a member without id, but with a name, goes", leave(group, "", instance="i", epoch=-2))
    talk.ask("an id of blanks", join(group, " ", topic))
    talk.ask("no group", join("", FIRST, topic))
    talk.ask("a group of blanks", join(" \t", FIRST, topic))
    talk.ask("an empty name", join(group, FIRST, topic, instance=""))
    talk.ask("an empty rack", join(group, FIRST, topic, rack=""))
    talk.ask("no timeout", beat(group, FIRST, 0, topics=[topic], owned=()))
    talk.ask("nothing said about partitions", beat(group, FIRST, 0, topics=[topic], timeout_ms=1000))
    owned = beat(group, FIRST, 0, topics=[topic], owned=[(topic, [0])], timeout_ms=1000)
    talk.ask("partitions owned before", owned)
    talk.ask("no topics", beat(group, FIRST, 0, owned=(), timeout_ms=1000))
    talk.ask("go without a name", leave(group, FIRST, epoch=-2))
    talk.ask("an epoch of -3", beat(group, FIRST, -3))
    talk.ask("an unknown assignor", join(group, FIRST, topic, assignor="sticky"))
    talk.ask("an empty assignor", join(group, FIRST, topic, assignor=""))
    talk.ask("an assignor in capitals", join(group, FIRST, topic, assignor="RANGE"))
    talk.ask("heartbeat in an unknown group", beat(group, FIRST, 1))
    talk.ask("leave an unknown group", leave(group, FIRST))
    talk.ask("everything wrong", beat("", "", 0, instance="", rack="", assignor="none"))


@conversation(BEAT)
def what_can_be_subscribed_to(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    group = at_once(talk)
    talk.ask("to no topic", join(group, FIRST))
    talk.ask("to a topic that is not there", beat(group, FIRST, 1, topics=["nowhere"]))
    talk.ask("to one topic twice", beat(group, FIRST, 2, topics=[topic, topic]))
    talk.ask("to the same again", beat(group, FIRST, 3, topics=[topic, topic]))
    talk.ask("to a name that no topic may have", beat(group, FIRST, 3, topics=["?", "__consumer_offsets"]))
    talk.ask("which it gives up", beat(group, FIRST, 3, topics=[], owned=()))
    talk.ask("in a group without any topic", beat(group, FIRST, 4))


@conversation(BEAT, DESCRIBE)
def two_members(talk: Talk) -> None:
    """Partitions change hands: the one gives up first, and the other waits until it has."""
    topic = talk.topic("t", 4)
    group = at_once(talk)
    talk.ask("the first joins", join(group, FIRST, topic))
    talk.ask("the second joins", join(group, SECOND, topic), by=SECOND)
    talk.settle_groups()
    talk.ask("describe what the first has to give up", describe(group))
    talk.ask("the second waits", beat(group, SECOND, 3), by=SECOND)
    revoked = talk.ask("the first hears of it", beat(group, FIRST, 2))
    talk.settle_groups()
    talk.ask("describe what is being given up", describe(group))
    talk.ask("the first says nothing", beat(group, FIRST, 2))
    talk.ask("the first still has it", beat(group, FIRST, 2, owned=[(topic, [0, 1, 2, 3])]))
    kept = revoked.assignment.topic_partitions[0].partitions if revoked.assignment else []
    talk.ask("the first has given it up", beat(group, FIRST, 2, owned=[(topic, kept)]))
    talk.ask("its answer was lost", beat(group, FIRST, 2, owned=[(topic, kept)]))
    talk.ask("its answer was lost, and it says nothing", beat(group, FIRST, 2))
    talk.ask("its answer was lost, and it has more", beat(group, FIRST, 2, owned=[(topic, [0, 1, 2, 3])]))
    talk.ask("the first goes on", beat(group, FIRST, 3))
    talk.ask("the second gets it", beat(group, SECOND, 3), by=SECOND)
    talk.settle_groups()
    talk.ask("describe when all is done", describe(group))
    talk.ask("the first leaves", leave(group, FIRST))
    talk.ask("the second gets the rest", beat(group, SECOND, 3), by=SECOND)
    talk.ask("the first comes back", join(group, FIRST, topic))
    talk.ask("the second gives up at once", beat(group, SECOND, 4, owned=()), by=SECOND)
    talk.ask("the first asks", beat(group, FIRST, 5))


@conversation(BEAT, DESCRIBE)
def three_members(talk: Talk) -> None:
    """A full group, whose members join and leave while others have not finished."""
    topic = talk.topic("t", 5)
    group = at_once(talk)
    talk.ask("the first joins", join(group, FIRST, topic))
    talk.ask("the second joins", join(group, SECOND, topic), by=SECOND)
    talk.ask("the third joins", join(group, THIRD, topic), by=THIRD)
    talk.ask("one too many joins", join(group, "fourth", topic), by="fourth")
    talk.ask("one without id joins", join(group, "", topic), by="fourth")
    talk.ask("a member joins again", join(group, SECOND, topic), by=SECOND)
    talk.ask("the first hears of it", beat(group, FIRST, 2))
    talk.settle_groups()
    described = talk.ask("describe", describe(group))
    owned = {member.member_id: member.target_assignment for member in described.groups[0].members}
    target = [(topic, part.partitions) for part in (owned[FIRST].topic_partitions if FIRST in owned else ())]
    talk.ask("the first gives up", beat(group, FIRST, 2, owned=target))
    talk.ask("the second asks", beat(group, SECOND, 4), by=SECOND)
    talk.ask("the third asks", beat(group, THIRD, 4), by=THIRD)
    talk.ask("the second leaves", leave(group, SECOND), by=SECOND)
    talk.ask("the third asks again", beat(group, THIRD, 4), by=THIRD)
    talk.ask("the first asks again", beat(group, FIRST, 4))
    talk.settle_groups()
    talk.ask("describe who is left", describe(group))


@conversation(BEAT, DESCRIBE)
def a_second_assignment_in_no_time(talk: Talk) -> None:
    """It has to wait (KIP-1263): the group knows more than its members are told."""
    topic = talk.topic("t", 2)
    group = much_later(talk)
    talk.ask("the first joins", join(group, FIRST, topic))
    talk.ask("the second joins", join(group, SECOND, topic), by=SECOND)
    talk.ask("the first asks", beat(group, FIRST, 2))
    talk.ask("the second asks", beat(group, SECOND, 2), by=SECOND)
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.ask("the first reads something else", beat(group, FIRST, 2, topics=["elsewhere"]))
    talk.ask("the first has given up", beat(group, FIRST, 2, owned=()))
    talk.ask("the second leaves", leave(group, SECOND), by=SECOND)
    talk.ask("the first leaves", leave(group, FIRST))
    talk.ask("another need not wait", join(group, THIRD, topic), by=THIRD)


@conversation(BEAT, DESCRIBE)
def static_members(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    group = at_once(talk)
    talk.ask("join", join(group, FIRST, topic, instance="i"))
    talk.ask("heartbeat", beat(group, FIRST, 2, instance="i"))
    talk.ask("heartbeat without the name", beat(group, FIRST, 2))
    talk.ask("join under a name that is taken", join(group, SECOND, topic, instance="i"), by=SECOND)
    talk.ask("heartbeat under another name", beat(group, FIRST, 2, instance="j"))
    talk.ask("heartbeat of another id", beat(group, SECOND, 2, instance="i"), by=SECOND)
    talk.ask("another id goes", leave(group, SECOND, instance="i", epoch=-2), by=SECOND)
    talk.ask("somebody goes whom nobody knows", leave(group, FIRST, instance="j", epoch=-2))
    talk.ask("go for a while", leave(group, FIRST, instance="i", epoch=-2))
    talk.settle_groups()
    talk.ask("describe a group whose member has gone", describe(group))
    talk.ask("heartbeat of the one that has gone", beat(group, FIRST, 2, instance="i"))
    talk.ask("go again", leave(group, FIRST, instance="i", epoch=-2))
    talk.ask("come back under a new id", join(group, SECOND, topic, instance="i"), by=SECOND)
    talk.ask("heartbeat of the new id", beat(group, SECOND, 2, instance="i"), by=SECOND)
    talk.ask("heartbeat of the old id", beat(group, FIRST, 2, instance="i"))
    talk.ask("heartbeat of the old id without the name", beat(group, FIRST, 2))
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.ask("go once more", leave(group, SECOND, instance="i", epoch=-2), by=SECOND)
    talk.ask("come back under the same id", join(group, SECOND, topic, instance="i"), by=SECOND)
    talk.ask("go, and read something else", leave(group, SECOND, instance="i", epoch=-2), by=SECOND)
    talk.ask("come back with another topic", join(group, THIRD, "elsewhere", instance="i"), by=THIRD)
    talk.ask("leave for good", leave(group, THIRD, instance="i"), by=THIRD)
    talk.ask("come back nevertheless", join(group, THIRD, topic, instance="i"), by=THIRD)
    talk.ask("take another name", join(group, THIRD, topic, instance="j"), by=THIRD)
    talk.ask("heartbeat under the name before", beat(group, THIRD, 2, instance="i"), by=THIRD)
    talk.settle_groups()
    talk.ask("describe the one with another name", describe(group))
    talk.ask("go under the other name", leave(group, THIRD, instance="j", epoch=-2), by=THIRD)
    talk.ask("come back under a third name", join(group, THIRD, topic, instance="k"), by=THIRD)
    talk.settle_groups()
    talk.ask("describe the one with a third name", describe(group))
    talk.ask("leave under the third name", leave(group, THIRD, instance="k"), by=THIRD)


@conversation(BEAT, DESCRIBE)
def a_member_that_does_not_give_up(talk: Talk) -> None:
    """It is written off after the time that it has asked for."""
    topic = talk.topic("t", 2)
    group = at_once(talk)
    talk.ask("the slow one joins", join(group, FIRST, topic, timeout_ms=150))
    talk.ask("another joins", join(group, SECOND, topic), by=SECOND)
    talk.ask("the slow one hears of it", beat(group, FIRST, 2))
    talk.until(
        beat(group, SECOND, 3, owned=()),
        lambda answer: answer.member_epoch == 4,
    )
    talk.ask("the slow one is too late", beat(group, FIRST, 2, owned=[(topic, [0])]))
    talk.settle_groups()
    talk.ask("describe", describe(group))


@conversation(BEAT, DESCRIBE)
def assignors(talk: Talk) -> None:
    long, short = talk.topic("long", 5), talk.topic("short", 1)
    group = at_once(talk)
    talk.ask("the first joins", join(group, FIRST, long, assignor="range"))
    talk.ask("the second joins", join(group, SECOND, long), by=SECOND)
    talk.settle_groups()
    talk.ask("describe ranges", describe(group))
    talk.ask("the second has another wish", beat(group, SECOND, 3, assignor="uniform"), by=SECOND)
    talk.ask("the first has it, too", beat(group, FIRST, 2, assignor="uniform"))
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.ask("the third reads another topic", join(group, THIRD, short), by=THIRD)
    talk.ask("the second reads both", beat(group, SECOND, 4, topics=[long, short]), by=SECOND)
    talk.settle_groups()
    talk.ask("describe a mixed group", describe(group))


@conversation(BEAT, DESCRIBE)
def topics_that_change(talk: Talk) -> None:
    old, grown = talk.topic("old", 1), talk.topic("grown", 1)
    group = at_once(talk)
    talk.ask("join", join(group, FIRST, old, grown, talk.name("new")))
    grow(talk, grown, 3)
    talk.ask("one has grown", beat(group, FIRST, 2))
    new = talk.topic("new", 2)
    talk.settle()
    talk.ask("one is new", beat(group, FIRST, 3))
    talk.delete_topic(old)
    talk.ask("one is gone", beat(group, FIRST, 4))
    rest = [(grown, [0, 1, 2]), (new, [0, 1])]
    talk.ask("it is given up", beat(group, FIRST, 4, owned=rest))
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.topic("other", 1)
    talk.settle()
    talk.ask("another one is new", beat(group, FIRST, 5))


@conversation(BEAT, DESCRIBE, rounds=REGEXES)
def regular_expressions(talk: Talk) -> None:
    """They are looked up after the answer that they are in."""
    topic = talk.topic("matching.a", 1)
    talk.settle()
    group = at_once(talk)
    pattern = talk.name("matching") + r"\..*"
    talk.ask("join", join(group, FIRST, regex=pattern))
    talk.until(describe(group), lambda answer: answer.groups[0].group_epoch == 2)
    talk.ask("heartbeat when it is looked up", beat(group, FIRST, 1))
    talk.settle_groups()
    talk.ask("describe", describe(group))
    talk.ask("another with the same", join(group, SECOND, regex=pattern), by=SECOND)
    talk.ask("a third with a name", join(group, THIRD, topic), by=THIRD)
    talk.ask("the third with both", beat(group, THIRD, 4, regex=pattern), by=THIRD)
    talk.ask("the second without", beat(group, SECOND, 3, topics=[topic], regex=""), by=SECOND)
    talk.settle_groups()
    talk.ask("describe names and expressions", describe(group))
    other = talk.name("g2")
    talk.ask("no closing bracket", join(other, FIRST, regex="("))
    talk.ask("looking ahead", join(other, FIRST, regex="(?=a)"))
    talk.ask("looking back at a group", join(other, FIRST, regex=r"(a)\1"))
    talk.ask("nothing to repeat", join(other, FIRST, regex="*"))
    talk.ask("no closing square bracket", join(other, FIRST, regex="[a"))
    talk.ask("no opening bracket", join(other, FIRST, regex="a)"))
    talk.ask("a repetition repeated", join(other, FIRST, regex="a**"))
    talk.ask("a backslash at the end", join(other, FIRST, regex="a\\"))
    talk.ask("a range backwards", join(other, FIRST, regex="[z-a]"))
    talk.ask("too many repetitions", join(other, FIRST, regex="a{1001}"))
    talk.ask("a name without end", join(other, FIRST, regex="(?P<n"))
    talk.ask("a name twice", join(talk.name("g3"), FIRST, regex="(?P<n>a)(?P<n>b)"))
    talk.ask("an unknown class", join(other, FIRST, regex="[[:foo:]]"))
    talk.ask("an unknown property", join(other, FIRST, regex=r"\p{Foo}"))
    talk.ask("an empty one", join(other, FIRST, regex=""))
    talk.ask("one with names", beat(other, SECOND, 0, topics=[topic], regex="none", owned=(), timeout_ms=100))


@conversation(BEAT, DESCRIBE)
def groups_that_cannot_be_described(talk: Talk) -> None:
    topic = talk.topic("t")
    group = talk.name("g")
    talk.ask("an unknown group", describe(group))
    talk.ask("a group without name", describe(""))
    talk.ask("no group", describe())
    talk.ask("join", join(group, FIRST, topic))
    talk.settle_groups()
    talk.ask("with operations", describe(group, with_operations=True))
    talk.ask("twice, and an unknown one", describe(group, talk.name("h"), group))
    talk.ask("one without name, too", describe(group, ""))
