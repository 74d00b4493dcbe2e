"""The coordinator follows the cluster: partitions come and go, logs are loaded, topics are deleted."""

import errno
from typing import Any

import pytest
import trio
import trio.testing

from broker.coordination import hosting
from broker.coordination.partitioning import partition_for
from protocol.error_codes import ErrorCode
from protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from protocol.messages.describe_groups import DescribeGroupsResponse
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupResponse
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.messages.offset_commit import OffsetCommitResponse
from protocol.messages.offset_fetch import OffsetFetchResponse
from protocol.messages.sync_group import SyncGroupResponse
from protocol.stored.metadata_records import PartitionRecord
from storage.memory_filesystem import MemoryFileSystem
from tests.broker.groups.group_broker import PARTITION_COUNT, START_MS, GroupBroker, as_read, group_broker
from tests.golden.groups import steps


def join(broker: GroupBroker, group: str = "g", **how: Any) -> str:
    """Become the only member of a stable group; its id."""
    joined = broker.ask(steps.join(group, **how), JoinGroupResponse, 3)
    assert joined.error_code == 0, joined
    synced = broker.ask(steps.sync(group, joined.generation_id, joined.member_id), SyncGroupResponse, 3)
    assert synced.error_code == 0, synced
    return joined.member_id


def heartbeat(broker: GroupBroker, member_id: str, group: str = "g", generation: int = 1) -> int:
    return broker.ask(steps.heartbeat(group, generation, member_id), HeartbeatResponse, 4).error_code


def commit(broker: GroupBroker, offset: int, group: str = "g", topic: str = "t") -> int:
    committed = broker.ask(steps.commit(group, (topic, 0, offset, "")), OffsetCommitResponse, 9)
    return committed.topics[0].partitions[0].error_code


def fetch(broker: GroupBroker, group: str = "g", topic: str = "t") -> int:
    fetched = broker.ask(steps.fetch(9, group, (topic, [0])), OffsetFetchResponse, 9).groups[0]
    return fetched.error_code or fetched.topics[0].partitions[0].committed_offset


def state(broker: GroupBroker, group: str = "g") -> str:
    return broker.ask(steps.describe(group), DescribeGroupsResponse, 6).groups[0].group_state


def listed(broker: GroupBroker) -> list[str] | int:
    answer = broker.ask(ListGroupsRequest(), ListGroupsResponse, 5)
    return answer.error_code or sorted(group.group_id for group in answer.groups)


def disk() -> MemoryFileSystem:
    return MemoryFileSystem(now_ms=lambda: START_MS)


def one_group_each(count: int = PARTITION_COUNT) -> list[str]:
    """Names of groups, one for each partition."""
    found: dict[int, str] = {}
    for number in range(1000):
        found.setdefault(partition_for(f"g{number}", count), f"g{number}")
    return [found[partition] for partition in range(count)]


# Beginning


async def test_a_partition_of_a_new_topic_begins_with_its_first_request() -> None:
    async with group_broker() as broker:
        assert commit_code_without_topic(broker) == ErrorCode.NOT_COORDINATOR
        broker.make_offsets_topic()
        assert len(broker.broker.partitions.open_leaders) == 0
        assert heartbeat(broker, "nobody") == ErrorCode.UNKNOWN_MEMBER_ID
        assert len(broker.broker.partitions.open_leaders) == 1
        assert listed(broker) == []


def commit_code_without_topic(broker: GroupBroker) -> int:
    broker.broker.create_topic("t")
    return commit(broker, 1)


async def test_groups_and_offsets_are_there_after_a_crash() -> None:
    file_system = disk()
    async with group_broker(file_system=file_system) as broker:
        broker.make_offsets_topic()
        broker.broker.create_topic("t")
        groups = one_group_each()
        members = {group: join(broker, group) for group in groups}
        for offset, group in enumerate(groups):
            committed = steps.commit(group, ("t", 0, offset, ""), generation=1, member_id=members[group])
            broker.ask(committed, OffsetCommitResponse, 9)
        image = broker.image
    async with group_broker(file_system=file_system, image=image) as broker:
        await trio.testing.wait_all_tasks_blocked()
        assert listed(broker) == sorted(groups)
        for offset, group in enumerate(groups):
            assert heartbeat(broker, members[group], group) == 0
            assert fetch(broker, group) == offset


async def test_while_a_partition_is_loading_its_clients_are_told_to_wait() -> None:
    file_system = disk()
    async with group_broker(file_system=file_system) as broker:
        broker.make_offsets_topic()
        broker.broker.create_topic("t")
        member = join(broker)
        image = broker.image
    async with group_broker(file_system=file_system, image=image) as broker:
        broker.broker.hold_threads()
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert listed(broker) == loading  # before anything was looked at
        assert fetch(broker) == loading  # this looks at it
        await trio.testing.wait_all_tasks_blocked()
        assert listed(broker) == loading
        assert commit(broker, 1) == loading
        assert broker.ask(steps.join("g"), JoinGroupResponse, 9).error_code == loading
        assert broker.ask(steps.describe("g"), DescribeGroupsResponse, 6).groups[0].error_code == loading
        deleted = broker.ask(DeleteGroupsRequest(groups_names=["g"]), DeleteGroupsResponse, 3)
        assert deleted.results[0].error_code == loading
        # A member cannot be helped, and need not be frightened either.
        assert heartbeat(broker, member) == 0
        assert heartbeat(broker, "stranger") == 0
        broker.broker.release_threads()
        await trio.testing.wait_all_tasks_blocked()
        assert state(broker) == "Stable"


async def test_a_partition_that_cannot_be_opened_is_tried_again_with_the_next_request() -> None:
    file_system = disk()
    async with group_broker(file_system=file_system) as broker:
        broker.make_offsets_topic()
        file_system.refuse("open", errno.EACCES, path_suffix=".log")
        assert heartbeat(broker, "m") == ErrorCode.NOT_COORDINATOR
        assert "are not served" in broker.lines
        assert heartbeat(broker, "m") == ErrorCode.UNKNOWN_MEMBER_ID


# Following the cluster


async def test_who_waits_is_sent_away_when_the_partition_moves() -> None:
    async with group_broker() as broker:
        topic_id = broker.make_offsets_topic()
        member = join(broker)
        waiting = broker.begin(steps.join("g"), 3, "other")
        assert not waiting.is_answered
        partition = partition_for("g", PARTITION_COUNT)
        broker.broker.change_leader(topic_id, 2, partition)
        assert as_read(waiting, JoinGroupResponse, 3).error_code == ErrorCode.NOT_COORDINATOR
        assert heartbeat(broker, member) == ErrorCode.NOT_COORDINATOR
        assert listed(broker) == []


async def test_a_partition_that_comes_back_is_loaded_anew() -> None:
    async with group_broker() as broker:
        topic_id = broker.make_offsets_topic()
        member = join(broker)
        partition = partition_for("g", PARTITION_COUNT)
        broker.broker.change_leader(topic_id, 2, partition)
        broker.broker.change_leader(topic_id, 1, partition)
        await trio.testing.wait_all_tasks_blocked()
        assert heartbeat(broker, member) == 0


async def test_a_new_leadership_of_the_same_broker_is_loaded_too() -> None:
    """Somebody else may have led, and written, in between."""
    async with group_broker() as broker:
        topic_id = broker.make_offsets_topic()
        member = join(broker)
        waiting = broker.begin(steps.join("g"), 3, "other")
        broker.broker.change_leader(topic_id, 1, partition_for("g", PARTITION_COUNT))
        assert as_read(waiting, JoinGroupResponse, 3).error_code == ErrorCode.NOT_COORDINATOR
        await trio.testing.wait_all_tasks_blocked()
        assert state(broker) == "Stable"
        assert heartbeat(broker, member) == 0


async def test_when_the_topic_is_deleted_there_are_no_groups() -> None:
    async with group_broker() as broker:
        topic_id = broker.make_offsets_topic()
        member = join(broker)
        broker.broker.delete_topic(topic_id)
        assert heartbeat(broker, member) == ErrorCode.NOT_COORDINATOR
        broker.make_offsets_topic()
        assert heartbeat(broker, member) == ErrorCode.UNKNOWN_MEMBER_ID
        assert listed(broker) == []


async def test_groups_stay_where_they_are_when_the_topic_grows() -> None:
    async with group_broker() as broker:
        topic_id = broker.make_offsets_topic()
        groups = one_group_each()
        for group in groups:
            join(broker, group)
        before = [broker.groups.partition_for(group) for group in groups]
        broker.broker.apply(
            *(
                PartitionRecord(partition_id=index, topic_id=topic_id, replicas=[1], isr=[1], leader=1)
                for index in range(PARTITION_COUNT, 10)
            )
        )
        assert [broker.groups.partition_for(group) for group in groups] == before
        assert listed(broker) == sorted(groups)


async def test_offsets_of_a_deleted_topic_disappear() -> None:
    async with group_broker() as broker:
        broker.make_offsets_topic()
        topic_id = broker.broker.create_topic("t")
        broker.broker.create_topic("u")
        for group in one_group_each():
            commit(broker, 5, group)
            commit(broker, 6, group, topic="u")
        broker.broker.delete_topic(topic_id)
        broker.broker.create_topic("t")
        for group in one_group_each():
            assert fetch(broker, group) == -1
            assert fetch(broker, group, topic="u") == 6


async def test_offsets_of_a_topic_deleted_during_a_load_disappear_after_it() -> None:
    file_system = disk()
    async with group_broker(file_system=file_system) as broker:
        broker.make_offsets_topic()
        topic_id = broker.broker.create_topic("t")
        commit(broker, 5)
        image = broker.image
    async with group_broker(file_system=file_system, image=image) as broker:
        broker.broker.hold_threads()
        await trio.testing.wait_all_tasks_blocked()
        broker.broker._topics_made = 10
        broker.broker.delete_topic(topic_id)
        broker.broker.create_topic("t")
        broker.broker.release_threads()
        await trio.testing.wait_all_tasks_blocked()
        assert fetch(broker) == -1


async def test_offsets_of_a_topic_made_anew_stay_when_the_new_coordinator_hears_late_of_the_old_one() -> None:
    file_system = disk()
    async with group_broker(file_system=file_system) as broker:
        broker.make_offsets_topic()
        old_id = broker.broker.create_topic("t")
        image = broker.image
        broker.broker.delete_topic(old_id)
        new_id = broker.broker.create_topic("t")
        commit(broker, 5)
    async with group_broker(file_system=file_system, image=image) as broker:
        broker.broker._topics_made = int.from_bytes(old_id, "big")
        broker.broker.delete_topic(old_id)
        assert broker.broker.create_topic("t") == new_id
        await trio.testing.wait_all_tasks_blocked()
        assert fetch(broker) == 5


# Time


async def test_sessions_end_by_themselves(autojump_clock: trio.testing.MockClock) -> None:
    async with group_broker() as broker:
        broker.make_offsets_topic()
        join(broker, session_ms=6000)
        await trio.sleep(5.9)
        assert state(broker) == "Stable"
        await trio.sleep(0.2)
        assert state(broker) == "Empty"


async def test_a_deadline_that_is_nearer_than_all_others_is_met(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with group_broker() as broker:
        broker.make_offsets_topic()
        join(broker, "patient", session_ms=60_000)
        await trio.sleep(1)
        join(broker, "impatient", session_ms=6000)
        await trio.sleep(6.1)
        assert state(broker, "impatient") == "Empty"
        assert state(broker, "patient") == "Stable"


async def test_a_waiting_member_is_answered_when_the_rebalance_times_out(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with group_broker() as broker:
        broker.make_offsets_topic()
        join(broker, session_ms=60_000, rebalance_ms=5000)
        waiting = broker.begin(steps.join("g", rebalance_ms=5000), 3, "other")
        before = trio.current_time()
        joined = await waiting.wait()
        assert trio.current_time() - before == pytest.approx(5, abs=0.01)
        assert joined.generation_id == 2


async def test_thousands_of_groups_cost_no_task_each(autojump_clock: trio.testing.MockClock) -> None:
    async with group_broker() as broker:
        broker.make_offsets_topic()
        await trio.testing.wait_all_tasks_blocked()
        tasks = trio.lowlevel.current_statistics().tasks_living
        for number in range(500):
            join(broker, f"group-{number}", session_ms=6000)
        assert trio.lowlevel.current_statistics().tasks_living <= tasks + 1  # a partition being made
        await trio.sleep(7)
        assert {state(broker, f"group-{number}") for number in range(500)} == {"Empty"}


@pytest.mark.acts("offsets.retention.minutes", "offsets.retention.check.interval.ms")
async def test_offsets_expire(autojump_clock: trio.testing.MockClock) -> None:
    settings = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"}
    async with group_broker(settings) as broker:
        broker.make_offsets_topic()
        broker.broker.create_topic("t")
        commit(broker, 5)
        await trio.sleep(59)
        assert fetch(broker) == 5
        await trio.sleep(3)
        assert fetch(broker) == -1
        assert listed(broker) == []


# Failures


async def test_a_shard_that_could_not_write_is_loaded_again(autojump_clock: trio.testing.MockClock) -> None:
    file_system = disk()
    async with group_broker(file_system=file_system) as broker:
        broker.make_offsets_topic()
        broker.broker.create_topic("t")
        member = join(broker)
        waiting = broker.begin(steps.join("g", instance="i"), 9, "other")
        # The last member leaves, and that cannot be written: nobody knows what is true any longer.
        broker.ask(steps.leave("g", ("", "i")), LeaveGroupResponse, 3)
        file_system.refuse("write", errno.ENOSPC, path_suffix=".log")
        left = broker.ask(steps.leave("g", (member, None)), LeaveGroupResponse, 3)
        assert left.error_code == ErrorCode.NOT_COORDINATOR
        assert waiting.is_answered
        assert fetch(broker) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await trio.sleep(hosting.RELOAD_DELAY_SECONDS + 0.1)
        assert state(broker) == "Stable"
        assert heartbeat(broker, member) == 0


async def test_a_commit_that_cannot_be_written_is_refused_and_that_is_all() -> None:
    file_system = disk()
    async with group_broker(file_system=file_system) as broker:
        broker.make_offsets_topic()
        broker.broker.create_topic("t")
        assert commit(broker, 5) == 0
        file_system.refuse("write", errno.ENOSPC, path_suffix=".log")
        assert commit(broker, 6) == ErrorCode.NOT_COORDINATOR
        assert fetch(broker) == 5
        assert commit(broker, 7) == 0
        assert fetch(broker) == 7
