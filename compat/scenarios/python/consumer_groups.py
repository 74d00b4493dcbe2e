"""Groups of KIP-848, in which the broker assigns the partitions."""

from compat.scenarios.python.checks import expect
from compat.scenarios.python.client import Partition, Record
from compat.scenarios.python.consuming import numbered, numbers
from compat.scenarios.python.groups import are_shared, fill, taken_from
from compat.scenarios.python.offsets import run_until
from compat.scenarios.python.registry import plays
from compat.scenarios.python.stage import Stage, partitions_of, values, wait_for


@plays("new-group-shares")
def share_and_take_back(stage: Stage) -> None:
    topic, group = stage.topic(4), stage.new_name("group")
    partitions = partitions_of(topic, 4)
    first = stage.member(group, [topic], new_protocol=True)
    wait_for(lambda: len(first.owned) == 4, "the first member has all partitions", first)
    second = stage.member(group, [topic], new_protocol=True)
    wait_for(lambda: are_shared(partitions, first, second), "two members share", first, second)
    expect(len(first.ever_lost), 2, "partitions that the first member lost on the way")
    fill(stage, topic, 4)
    wait_for(lambda: len(taken_from(first, second)) >= 80, "all records are consumed", first, second)
    expect(set(taken_from(first, second).values()), {1}, "how often records were consumed")
    second.leave()
    wait_for(lambda: len(first.owned) == 4, "the one that is left has all partitions", first)
    expect(len(first.ever_lost), 2, "partitions that the first member lost in the end")


@plays("new-group-goes-on")
def go_on_where_the_new_group_was(stage: Stage) -> None:
    topic, group = stage.topic(), stage.new_name("group")
    producer = stage.producer()
    producer.send(topic, numbered(0, 30))
    member = run_until(stage, group, topic, 30, new_protocol=True)
    member.ask(lambda consumer: consumer.commit())
    member.leave()
    producer.send(topic, numbered(30, 40))
    again = run_until(stage, group, topic, 10, new_protocol=True)
    expect(values(again.taken), numbers(30, 40), "values after the restart")


@plays("new-group-pattern")
def leave_the_pattern_to_the_broker(stage: Stage) -> None:
    stem = stage.new_name("pattern")
    one, other = (stage.topic(2, name=f"{stem}.{end}") for end in ("one", "other"))
    member = stage.member(stage.new_name("group"), pattern=f"{stem}\\.(one|two)", new_protocol=True)
    wait_for(
        lambda: member.owned == {*partitions_of(one, 2)}, "the member has the topic that matches", member
    )
    two = stage.topic(2, name=f"{stem}.two")
    wanted = {*partitions_of(one, 2), *partitions_of(two, 2)}
    wait_for(lambda: member.owned == wanted, "the member has the new topic that matches", member)
    for name in (one, two, other):
        fill(stage, name, 2, 5)
    wait_for(lambda: len(member.taken) >= 20, "their records are consumed", member)
    expect({record.topic for record in member.taken}, {one, two}, "topics of the records")


@plays("new-group-static")
def come_back_as_static_member(stage: Stage) -> None:
    topic, group = stage.topic(4), stage.new_name("group")
    partitions = partitions_of(topic, 4)
    first = stage.member(group, [topic], instance_id="first", new_protocol=True)
    wait_for(lambda: len(first.owned) == 4, "the first member has all partitions", first)
    second = stage.member(group, [topic], instance_id="second", new_protocol=True)
    wait_for(lambda: are_shared(partitions, first, second), "two members share", first, second)
    had, lost = set(second.owned), set(first.ever_lost)
    second.leave()
    again = stage.member(group, [topic], instance_id="second", new_protocol=True)
    wait_for(lambda: len(again.owned) >= len(had), "the member that came back has partitions", first, again)
    expect(again.owned, had, "partitions of the member that came back")
    expect(first.ever_lost, lost, "partitions that the other member lost meanwhile")


@plays("new-group-grows")
def add_partitions_under_a_new_group(stage: Stage) -> None:
    topic = stage.topic(2)
    member = stage.member(stage.new_name("group"), [topic], new_protocol=True)
    wait_for(lambda: len(member.owned) == 2, "the member has two partitions", member)
    stage.admin.create_partitions(topic, 4)
    wait_for(lambda: len(member.owned) == 4, "the member has the new partitions, too", member)
    stage.send(topic, [Record(b"x", partition=number) for number in range(4)])
    wait_for(lambda: len(taken_from(member)) == 4, "the member has a record of each partition", member)


@plays("new-group-mixed")
def move_a_group_to_the_new_protocol(stage: Stage) -> None:
    topic, group = stage.topic(4), stage.new_name("group")
    partitions = partitions_of(topic, 4)

    def has_all(owned: set[Partition]) -> bool:
        return sorted(owned) == partitions

    old = stage.member(group, [topic], cooperative=True)
    wait_for(lambda: has_all(old.owned), "the member by the classic protocol has all partitions", old)
    new = stage.member(group, [topic], new_protocol=True)
    wait_for(lambda: are_shared(partitions, old, new), "members by both protocols share", old, new)
    fill(stage, topic, 4)
    wait_for(lambda: len(taken_from(old, new)) >= 80, "all records are consumed", old, new)
    expect(set(taken_from(old, new).values()), {1}, "how often records were consumed")
    old.leave()
    wait_for(lambda: has_all(new.owned), "the member by the new protocol has all partitions", new)
    back = stage.member(group, [topic], cooperative=True)
    wait_for(lambda: are_shared(partitions, back, new), "members by both protocols share again", back, new)
    new.leave()
    wait_for(lambda: has_all(back.owned), "the member by the classic protocol has all partitions again", back)
