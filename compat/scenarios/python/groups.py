"""Groups share partitions among their members, whoever comes and goes."""

from collections import Counter

from compat.scenarios.python.checks import expect
from compat.scenarios.python.client import Partition, Record
from compat.scenarios.python.members import Member
from compat.scenarios.python.registry import plays
from compat.scenarios.python.stage import Stage, partitions_of, wait_for


def fill(stage: Stage, topic: str, partition_count: int, count: int = 20) -> None:
    """Put ``count`` records on each partition."""
    records = [Record(b"x", partition=number) for number in range(partition_count) for _ in range(count)]
    stage.send(topic, records)


def taken_from(*members: Member) -> Counter[tuple[int, int]]:
    """How often each record was taken."""
    return Counter(record.place for member in members for record in member.taken)


def are_shared(partitions: list[Partition], *members: Member) -> bool:
    """Whether every partition has one owner and every member has some."""
    owned = [partition for member in members for partition in member.owned]
    return sorted(owned) == sorted(partitions) and all(member.owned for member in members)


@plays("group-of-one")
def join_alone(stage: Stage) -> None:
    topic = stage.topic(3)
    fill(stage, topic, 3)
    member = stage.member(stage.new_name("group"), [topic])
    wait_for(lambda: member.owned == set(partitions_of(topic, 3)), "the member has all partitions", member)
    wait_for(lambda: len(member.taken) >= 60, "all records are consumed", member)
    expect(set(taken_from(member).values()), {1}, "how often records were consumed")


@plays("group-shares")
def join_as_second(stage: Stage) -> None:
    topic, group = stage.topic(4), stage.new_name("group")
    partitions = partitions_of(topic, 4)
    first = stage.member(group, [topic])
    wait_for(lambda: len(first.owned) == 4, "the first member has all partitions", first)
    second = stage.member(group, [topic])
    wait_for(lambda: are_shared(partitions, first, second), "two members share", first, second)
    expect((len(first.owned), len(second.owned)), (2, 2), "partitions of the two members")
    fill(stage, topic, 4)
    wait_for(lambda: len(taken_from(first, second)) >= 80, "all records are consumed", first, second)
    expect(set(taken_from(first, second).values()), {1}, "how often records were consumed")


@plays("group-hands-over")
def leave_to_another(stage: Stage) -> None:
    topic, group = stage.topic(4), stage.new_name("group")
    partitions = partitions_of(topic, 4)
    first = stage.member(group, [topic])
    second = stage.member(group, [topic])
    wait_for(lambda: are_shared(partitions, first, second), "two members share", first, second)
    first.leave()
    wait_for(lambda: len(second.owned) == 4, "the one that is left has all partitions", second)
    fill(stage, topic, 4)
    wait_for(lambda: len(taken_from(second)) >= 80, "it consumes all records", second)


@plays("group-pattern")
def join_for_a_pattern(stage: Stage) -> None:
    stem = stage.new_name("pattern")
    names = [stage.topic(2, name=f"{stem}.{end}") for end in ("one", "two", "other")]
    for name in names:
        fill(stage, name, 2, 5)
    member = stage.member(stage.new_name("group"), pattern=f"{stem}\\.(one|two)")
    wanted = {*partitions_of(names[0], 2), *partitions_of(names[1], 2)}
    wait_for(lambda: member.owned == wanted, "the member has the topics that match", member)
    wait_for(lambda: len(member.taken) >= 20, "their records are consumed", member)
    expect({record.topic for record in member.taken}, set(names[:2]), "topics of the records")


@plays("group-cooperative")
def join_cooperatively(stage: Stage) -> None:
    topic, group = stage.topic(4), stage.new_name("group")
    partitions = partitions_of(topic, 4)
    first = stage.member(group, [topic], cooperative=True)
    wait_for(lambda: len(first.owned) == 4, "the first member has all partitions", first)
    second = stage.member(group, [topic], cooperative=True)
    wait_for(lambda: are_shared(partitions, first, second), "two members share", first, second)
    expect(len(first.ever_lost), 2, "partitions that the first member lost on the way")
    second.leave()
    wait_for(lambda: len(first.owned) == 4, "the one that is left has all partitions", first)
    expect(len(first.ever_lost), 2, "partitions that the first member lost in the end")


@plays("group-static")
def come_back_as_static_member(stage: Stage) -> None:
    topic, group = stage.topic(4), stage.new_name("group")
    partitions = partitions_of(topic, 4)
    first = stage.member(group, [topic], instance_id="first")
    wait_for(lambda: len(first.owned) == 4, "the first member has all partitions", first)
    second = stage.member(group, [topic], instance_id="second")
    wait_for(lambda: are_shared(partitions, first, second), "two members share", first, second)
    had, lost = set(second.owned), set(first.ever_lost)
    second.leave()
    again = stage.member(group, [topic], instance_id="second")
    wait_for(lambda: len(again.owned) >= len(had), "the member that came back has partitions", first, again)
    expect(again.owned, had, "partitions of the member that came back")
    expect(first.ever_lost, lost, "partitions that the other member lost meanwhile")


@plays("group-session")
def fall_silent(stage: Stage) -> None:
    topic, group = stage.topic(4), stage.new_name("group")
    partitions = partitions_of(topic, 4)
    first = stage.member(group, [topic])
    silent = stage.member(group, [topic], instance_id="silent")
    wait_for(lambda: are_shared(partitions, first, silent), "two members share", first, silent)
    silent.leave()  # a static member goes without a word
    wait_for(lambda: len(first.owned) == 4, "the other has all partitions when the session is over", first)


@plays("group-grows")
def add_partitions_under_a_group(stage: Stage) -> None:
    topic = stage.topic(2)
    # One long poll: kafka-python forgets a rebalance of its own making that a poll leaves unfinished.
    member = stage.member(stage.new_name("group"), [topic], metadata_age_ms=500, poll_seconds=5)
    wait_for(lambda: len(member.owned) == 2, "the member has two partitions", member)
    stage.admin.create_partitions(topic, 4)
    wait_for(lambda: len(member.owned) == 4, "the member has the new partitions, too", member)
    fill(stage, topic, 4, 1)
    wait_for(lambda: len(taken_from(member)) == 4, "the member has a record of each partition", member)


@plays("two-groups")
def consume_in_two_groups(stage: Stage) -> None:
    topic = stage.topic(2)
    fill(stage, topic, 2)
    one = stage.member(stage.new_name("group"), [topic])
    other = stage.member(stage.new_name("group"), [topic])
    wait_for(lambda: len(one.taken) >= 40 and len(other.taken) >= 40, "each has all records", one, other)
    for member in (one, other):
        expect(set(taken_from(member).values()), {1}, "how often records were consumed")
