"""What a group commits is where it goes on."""

from collections.abc import Mapping
from typing import Any

from compat.scenarios.python.checks import expect
from compat.scenarios.python.client import Committed, Consumer, Partition
from compat.scenarios.python.consuming import numbered, numbers
from compat.scenarios.python.members import Member
from compat.scenarios.python.registry import plays
from compat.scenarios.python.stage import Stage, partitions_of, values, wait_for


def run_until(stage: Stage, group: str, topic: str, count: int, **options: Any) -> Member:
    """A member that has taken ``count`` records."""
    member = stage.member(group, [topic], **options)
    wait_for(lambda: len(member.taken) >= count, f"{count} records are consumed", member)
    return member


def expect_committed(
    consumer: Consumer, wanted: Mapping[Partition, Committed | None], what: str = "committed offsets"
) -> None:
    found = consumer.committed(wanted.keys())
    for partition, committed in found.items():
        if committed is not None and committed.metadata is None:
            known = wanted[partition]
            found[partition] = committed._replace(metadata=known and known.metadata)
    expect(found, wanted, what)


@plays("commit-and-resume")
def go_on_where_the_group_was(stage: Stage) -> None:
    topic, group = stage.topic(), stage.new_name("group")
    producer = stage.producer()
    producer.send(topic, numbered(0, 30))
    member = run_until(stage, group, topic, 30)
    member.ask(lambda consumer: consumer.commit())
    member.leave()
    producer.send(topic, numbered(30, 40))
    again = run_until(stage, group, topic, 10)
    expect(values(again.taken), numbers(30, 40), "values after the restart")


@plays("commit-chosen")
def commit_chosen_offsets(stage: Stage) -> None:
    topic, group = stage.topic(2), stage.new_name("group")
    first, second = partitions_of(topic, 2)
    producer = stage.producer()
    producer.send(topic, [*numbered(0, 10, partition=0), *numbered(0, 10, partition=1)])
    chosen = {first: Committed(4, "half way"), second: Committed(7)}
    member = run_until(stage, group, topic, 20)
    member.ask(lambda consumer: consumer.commit(chosen))
    member.ask(lambda consumer: expect_committed(consumer, chosen))
    member.leave()
    again = run_until(stage, group, topic, 9)
    places = {record.place for record in again.taken}
    expect(places, {(0, 4), (0, 5), (0, 6), (0, 7), (0, 8), (0, 9), (1, 7), (1, 8), (1, 9)}, "places")


@plays("commit-asynchronously")
def commit_without_waiting(stage: Stage) -> None:
    topic, group = stage.topic(), stage.new_name("group")
    partition = Partition(topic, 0)
    stage.send(topic, numbered(0, 10))
    member = run_until(stage, group, topic, 10)
    is_confirmed = member.ask(lambda consumer: consumer.commit_soon({partition: Committed(6)}))
    wait_for(is_confirmed, "the commit is confirmed", member)
    member.ask(lambda consumer: expect_committed(consumer, {partition: Committed(6)}))


@plays("commit-automatically")
def commit_by_closing(stage: Stage) -> None:
    topic, group = stage.topic(), stage.new_name("group")
    partition = Partition(topic, 0)
    stage.send(topic, numbered(0, 10))
    run_until(stage, group, topic, 10, auto_commit=True).leave()
    reader = stage.consumer(group=group)
    reader.assign([partition])
    found = reader.committed([partition])[partition]
    expect(found and found.offset, 10, "committed offset")


@plays("commit-without-members")
def commit_without_joining(stage: Stage) -> None:
    topic, group = stage.topic(2), stage.new_name("group")
    first, second = partitions_of(topic, 2)
    stage.send(topic, numbered(0, 10, partition=0))
    consumer = stage.consumer(group=group)
    consumer.assign([first, second])
    expect_committed(consumer, {first: None, second: None}, "committed before")
    consumer.commit({first: Committed(3)})
    expect_committed(consumer, {first: Committed(3), second: None}, "committed afterwards")


@plays("reset-without-commit")
def start_without_commits(stage: Stage) -> None:
    topic = stage.topic()
    producer = stage.producer()
    producer.send(topic, numbered(0, 5))
    early = stage.member(stage.new_name("group"), [topic], reset="earliest")
    late = stage.member(stage.new_name("group"), [topic], reset="latest")
    wait_for(lambda: len(early.taken) >= 5, "the group that starts at the beginning has records", early)
    wait_for(lambda: late.owned, "the group that starts at the end has its partition", late)
    partition = Partition(topic, 0)
    wait_for(lambda: late.ask(lambda consumer: consumer.position(partition)) == 5, "it is at the end", late)
    producer.send(topic, numbered(5, 8))
    wait_for(lambda: len(early.taken) >= 8 and len(late.taken) >= 3, "both get new records", early, late)
    expect(values(early.taken), numbers(0, 8), "values from the beginning")
    expect(values(late.taken), numbers(5, 8), "values from the end")
