"""Share groups (KIP-932): members take records one by one and say what becomes of each."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from compat.scenarios.python.checks import expect, expect_that, refused
from compat.scenarios.python.client import Code, Partition, TakenRecord
from compat.scenarios.python.consuming import numbered, numbers
from compat.scenarios.python.registry import plays
from compat.scenarios.python.share_client import (
    ACCEPT,
    REJECT,
    RELEASE,
    ShareConsumer,
    SharedRecord,
)
from compat.scenarios.python.stage import Stage, partitions_of, values, wait_for


class Sharing(NamedTuple):
    """A share group that begins at the beginning, its topic, and its first member."""

    group: str
    topic: str
    member: ShareConsumer


def share(
    stage: Stage, partition_count: int = 1, settings: Mapping[str, str] | None = None, **options: Any
) -> Sharing:
    group = stage.new_name("group")
    member = stage.share_consumer(group, **options)
    topic = stage.topic(partition_count)
    wanted = {"share.auto.offset.reset": "earliest", **(settings or {})}
    stage.admin.change_settings("group", group, put=wanted)
    member.subscribe([topic])
    return Sharing(group, topic, member)


def another(stage: Stage, sharing: Sharing, **options: Any) -> ShareConsumer:
    member = stage.share_consumer(sharing.group, **options)
    member.subscribe([sharing.topic])
    return member


def take_shared(member: ShareConsumer, count: int) -> list[SharedRecord]:
    """The next ``count`` records, or more if they came together."""
    taken: list[SharedRecord] = []

    def enough() -> bool:
        taken.extend(member.poll(0.5))
        return len(taken) >= count

    wait_for(enough, f"{count} records are consumed")
    return taken


def records_of(taken: list[SharedRecord]) -> list[TakenRecord]:
    return [each.record for each in taken]


def offsets(taken: list[SharedRecord]) -> list[int]:
    return [each.record.place.offset for each in taken]


def counts(taken: list[SharedRecord]) -> set[int]:
    return {each.delivery_count for each in taken}


def acknowledge(member: ShareConsumer, how: Mapping[str, list[SharedRecord]]) -> None:
    """Say what becomes of records, and wait until the broker knows."""
    for kind, records in how.items():
        for each in records:
            member.acknowledge(each.record, kind)
    member.commit()


@plays("share-alone")
def take_all_alone(stage: Stage) -> None:
    sharing = share(stage, 2)
    stage.send(sharing.topic, [*numbered(0, 20, partition=0), *numbered(0, 20, partition=1)])
    taken = take_shared(sharing.member, 40)
    places = sorted(record.place for record in records_of(taken))
    expect(places, [(partition, offset) for partition in (0, 1) for offset in range(20)], "places")
    expect(counts(taken), {1}, "delivery counts")


@plays("share-goes-on")
def go_on_where_the_share_group_was(stage: Stage) -> None:
    sharing = share(stage)
    producer = stage.producer()
    producer.send(sharing.topic, numbered(0, 20))
    take_shared(sharing.member, 20)
    sharing.member.commit()
    sharing.member.close()
    producer.send(sharing.topic, numbered(20, 25))
    taken = take_shared(another(stage, sharing), 5)
    expect(values(records_of(taken)), numbers(20, 25), "values of another member")


@plays("share-among-members")
def share_one_partition(stage: Stage) -> None:
    sharing = share(stage, records_max=10)
    members = (sharing.member, another(stage, sharing, records_max=10))
    taken: list[list[SharedRecord]] = [[], []]
    producer = stage.producer()
    sent = 0

    def poll_all() -> None:
        for records, member in zip(taken, members, strict=True):
            records.extend(member.poll(0.2))
            member.commit()

    def both_have_some() -> bool:
        nonlocal sent
        producer.send(sharing.topic, numbered(sent, sent + 20))
        sent += 20
        poll_all()
        return all(taken)

    def all_is_taken() -> bool:
        poll_all()
        return sum(map(len, taken)) >= sent

    wait_for(both_have_some, "two members have records of one partition")
    wait_for(all_is_taken, "all records are consumed")
    expect(sorted(offsets(taken[0] + taken[1])), list(range(sent)), "offsets of both members")
    expect(counts(taken[0] + taken[1]), {1}, "delivery counts")


@plays("share-release")
def release_records(stage: Stage) -> None:
    sharing = share(stage, explicit=True)
    stage.send(sharing.topic, numbered(0, 10))
    taken = take_shared(sharing.member, 10)
    acknowledge(sharing.member, {ACCEPT: taken[::2], RELEASE: taken[1::2]})
    again = take_shared(sharing.member, 5)
    expect(offsets(again), [1, 3, 5, 7, 9], "offsets that were released")
    expect(counts(again), {2}, "delivery counts of what was released")
    acknowledge(sharing.member, {ACCEPT: again})


@plays("share-reject")
def reject_records(stage: Stage) -> None:
    sharing = share(stage, explicit=True)
    producer = stage.producer()
    producer.send(sharing.topic, numbered(0, 10))
    taken = take_shared(sharing.member, 10)
    acknowledge(sharing.member, {REJECT: taken[:5], ACCEPT: taken[5:]})
    producer.send(sharing.topic, numbered(10, 12))
    later = take_shared(sharing.member, 2)
    expect(offsets(later), [10, 11], "offsets after a rejection")
    acknowledge(sharing.member, {ACCEPT: later})


@plays("share-delivery-limit")
def release_too_often(stage: Stage) -> None:
    sharing = share(stage, explicit=True)
    producer = stage.producer()
    producer.send(sharing.topic, numbered(0, 1))
    for count in range(1, 6):
        taken = take_shared(sharing.member, 1)
        expect((offsets(taken), counts(taken)), ([0], {count}), "offset and delivery count")
        acknowledge(sharing.member, {RELEASE: taken})
    producer.send(sharing.topic, numbered(1, 2))
    later = take_shared(sharing.member, 1)
    expect(offsets(later), [1], "offsets after the fifth delivery")
    acknowledge(sharing.member, {ACCEPT: later})


@plays("share-takes-over")
def take_over_from_a_member_that_leaves(stage: Stage) -> None:
    sharing = share(stage, explicit=True)
    stage.send(sharing.topic, numbered(0, 10))
    taken = take_shared(sharing.member, 10)
    acknowledge(sharing.member, {ACCEPT: taken[:4]})
    sharing.member.close()
    other = another(stage, sharing, explicit=True)
    again = take_shared(other, 6)
    expect(offsets(again), [4, 5, 6, 7, 8, 9], "offsets that nothing was said of")
    acknowledge(other, {ACCEPT: again})


@plays("share-renew")
def renew_the_lock(stage: Stage) -> None:
    sharing = share(stage, explicit=True)
    producer = stage.producer()
    producer.send(sharing.topic, numbered(0, 2))
    taken = take_shared(sharing.member, 2)
    sharing.member.renew(records_of(taken))
    acknowledge(sharing.member, {ACCEPT: taken})
    producer.send(sharing.topic, numbered(2, 3))
    later = take_shared(sharing.member, 1)
    expect(offsets(later), [2], "offsets after what was renewed and accepted")
    acknowledge(sharing.member, {ACCEPT: later})


@plays("share-committed-only")
def share_what_is_committed(stage: Stage) -> None:
    sharing = share(stage, settings={"share.isolation.level": "read_committed"})
    producer = stage.transactional_producer(stage.new_name("transaction"))
    producer.begin()
    producer.send(sharing.topic, numbered(0, 3))
    producer.abort()
    producer.begin()
    producer.send(sharing.topic, numbered(3, 6))
    producer.commit()
    taken = take_shared(sharing.member, 3)
    expect(values(records_of(taken)), numbers(3, 6), "values that are committed")


@plays("describe-share-group")
def describe_a_share_group(stage: Stage) -> None:
    sharing = share(stage, 2)
    stage.send(sharing.topic, numbered(0, 1, partition=0))
    take_shared(sharing.member, 1)
    sharing.member.commit()
    described = stage.admin.describe_share_group(sharing.group)
    expect(described.state, "Stable", "state")
    (only,) = described.members
    expect_that(only.member_id, "the member has no id")
    expect_that(only.client_id, "the member has no client id")
    expect(only.host, "/127.0.0.1", "host of the member")
    expect(only.assigned, set(partitions_of(sharing.topic, 2)), "partitions of the member")
    sharing.member.close()
    wait_for(lambda: stage.admin.describe_share_group(sharing.group).state == "Empty", "the group is empty")


@plays("share-group-offsets")
def change_the_offsets_of_a_share_group(stage: Stage) -> None:
    sharing, admin = share(stage), stage.admin
    place = Partition(sharing.topic, 0)
    stage.send(sharing.topic, numbered(0, 10))
    take_shared(sharing.member, 10)
    sharing.member.commit()
    expect(set(admin.share_group_offsets(sharing.group)), {place}, "partitions with offsets")
    sharing.member.close()
    admin.alter_share_group_offsets(sharing.group, {place: 4})
    expect(admin.share_group_offsets(sharing.group), {place: 4}, "offsets that were altered")
    member = another(stage, sharing)
    expect(offsets(take_shared(member, 6)), [4, 5, 6, 7, 8, 9], "offsets of the group's records")
    member.commit()
    member.close()
    admin.delete_share_group_offsets(sharing.group, sharing.topic)
    expect(admin.share_group_offsets(sharing.group), {}, "offsets that are left")


@plays("delete-share-group")
def delete_a_share_group(stage: Stage) -> None:
    sharing, admin = share(stage), stage.admin
    stage.send(sharing.topic, numbered(0, 1))
    take_shared(sharing.member, 1)
    with refused(Code.NON_EMPTY_GROUP, "a group with a member"):
        admin.delete_share_group(sharing.group)
    sharing.member.close()
    admin.delete_share_group(sharing.group)
    expect_that(sharing.group not in admin.list_groups(), "a deleted group is listed")
    with refused(Code.GROUP_ID_NOT_FOUND, "a group that is not there"):
        admin.delete_share_group(sharing.group)
