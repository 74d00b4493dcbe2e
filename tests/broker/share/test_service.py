"""Share groups from the request to the disk: on Trio's time, with both coordinators and real logs."""

import errno
from typing import Any, NoReturn

import pytest
import trio
from trio.testing import MockClock

from broker.coordination.leader_log import LeaderLog
from broker.metadata.topic_names import SHARE_GROUP_STATE
from broker.network.call import Call
from broker.network.waiting import NotYet, Waiting
from broker.share import group_admin
from broker.share.coordinator import ShareCoordinator
from broker.share.fetching import FIRST_READ_BYTES
from broker.share.state_questions import RETRY_SECONDS
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from protocol.messages.share_fetch import (
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
    ShareFetchResponse,
)
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from storage.file_range import FileRange
from storage.memory_filesystem import MemoryFile
from tests.broker.partitions.one_broker import some_batch
from tests.broker.quotas.test_desk import Desk as QuotaDesk
from tests.broker.share.desk import ACCEPT, LOCK_SECONDS, RELEASE, Desk, desk


async def test_records_go_to_one_member_until_they_are_accepted(autojump_clock: MockClock) -> None:
    async with desk() as it:
        await it.enter("a")
        assert await it.fetch("a", 0) == [(0, 9, 1)]
        assert await it.fetch("b", 0) == []
        assert await it.fetch("a", 1, (0, 3, ACCEPT), (4, 4, RELEASE)) == [(4, 4, 2)]
        await trio.sleep(1)
        assert await it.standing() == [(0, 6)], "the start is written with what comes next"
        assert await it.fetch("b", 1) == []


async def test_what_is_not_acknowledged_in_time_goes_to_others(autojump_clock: MockClock) -> None:
    async with desk() as it:
        await it.enter("a")
        assert await it.fetch("a", 0) == [(0, 9, 1)]
        await trio.sleep(LOCK_SECONDS - 2)
        assert await it.fetch("b", 0) == []
        await trio.sleep(3)
        assert await it.fetch("b", 1) == [(0, 9, 2)]


async def test_what_a_throttled_member_does_not_get_stays_acquired(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Kafka, until the lock is over: then it has been delivered twice."""
    quotas = QuotaDesk(consumer_byte_rate=1.0)
    async with desk() as it:
        await it.enter("a")
        with monkeypatch.context() as limited:
            limited.setattr(Call, "meter", quotas.meter())
            assert await it.fetch("a", 0) == []
        assert quotas.connection.deaf_until > trio.current_time()
        assert await it.fetch("a", 1) == []
        await trio.sleep(LOCK_SECONDS + 1)
        assert await it.fetch("a", 2) == [(0, 9, 2)]


async def test_a_crash_loses_locks_and_nothing_else(autojump_clock: MockClock) -> None:
    async with desk() as it:
        await it.enter("a")
        assert await it.fetch("a", 0) == [(0, 9, 1)]
        await it.fetch("a", 1, (0, 3, ACCEPT), (6, 7, ACCEPT))
        await trio.sleep(1)
        stood = await it.standing()
        file_system, image = it.broker.broker.file_system, it.broker.image
    async with desk(file_system, image) as again:
        await trio.sleep(1)
        assert await again.standing() == stood
        assert [each[:2] for each in await again.fetch("c", 0)] == [(4, 5), (8, 9)]


async def test_a_group_without_members_can_be_moved(autojump_clock: MockClock) -> None:
    async with desk() as it:
        await it.enter("a")
        assert await it.alter(5) is ErrorCode.NON_EMPTY_GROUP
        await it.beat("a", -1)
        assert await it.alter(5) is ErrorCode.NONE
        assert await it.standing() == [(5, 5)]
        await it.enter("a")
        assert await it.fetch("a", 0) == [(5, 9, 1)]


async def test_moving_a_group_ends_what_was_read_before(autojump_clock: MockClock) -> None:
    async with desk() as it:
        assert await it.alter(2) is ErrorCode.NONE
        assert await it.fetch("a", 0) == [(2, 9, 1)]
        assert await it.alter(7) is ErrorCode.NONE
        assert await it.fetch("b", 0) == [(7, 9, 1)]
        assert await it.standing() == [(7, 3)]


async def test_a_deleted_group_begins_anew(autojump_clock: MockClock) -> None:
    async with desk() as it:
        await it.enter("a")
        await it.fetch("a", 0)
        await it.fetch("a", 1, (0, 9, ACCEPT))
        assert await it.delete_group() is ErrorCode.NON_EMPTY_GROUP
        await it.beat("a", -1)
        assert await it.delete_group() is ErrorCode.NONE
        assert await it.standing() == []
        assert await it.delete_group() is ErrorCode.GROUP_ID_NOT_FOUND
        await it.enter("a")
        assert await it.fetch("b", 0) == [(0, 9, 1)]


async def test_a_topic_can_be_forgotten(autojump_clock: MockClock) -> None:
    async with desk() as it:
        await it.enter("a")
        await it.fetch("a", 0)
        await it.fetch("a", 1, (0, 9, ACCEPT))
        await it.beat("a", -1)
        topics = [DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in ("t", "nowhere")]
        answer = await it.ask(DeleteShareGroupOffsetsRequest(group_id="g", topics=topics), 0)
        assert sorted((each.topic_name, ErrorCode(each.error_code)) for each in answer.responses) == [
            ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("t", ErrorCode.NONE),
        ]
        assert await it.standing() == []
        await it.enter("a")
        assert await it.fetch("b", 0) == [(0, 9, 1)]


async def test_no_more_is_read_than_a_member_can_have(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []

    def read_first(found: FileRange, size_bytes: int) -> bytes:
        sizes.append(size_bytes)
        return found.file.pread(size_bytes, found.position)

    async with desk() as it:
        for _ in range(99):
            it.broker.broker.produce("t", some_batch(10, size=1000))
        await it.enter("a")
        monkeypatch.setattr(FileRange, "read_first", read_first)
        assert await it.fetch("a", 0) == [(0, 99, 1)]
        assert await it.fetch("b", 0) == [(100, 199, 1)]
    assert sizes == [FIRST_READ_BYTES, 4 * FIRST_READ_BYTES] * 2


async def test_a_fetch_waits_for_logs_that_are_being_made(autojump_clock: MockClock) -> None:
    async with desk() as it:
        topic_id = it.broker.broker.create_topic("u", 2)
        topics = [FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition_index=1)])]
        request = ShareFetchRequest(group_id="g", member_id="a", share_session_epoch=0, topics=topics)
        with pytest.raises(NotYet):
            it.broker.broker.handle(request, 2)
        it.broker.broker.make_missing()
        answer = it.broker.broker.handle(request, 2)
        assert isinstance(answer, Waiting | ShareFetchResponse)


@pytest.mark.parametrize("is_cached", [True, False])
async def test_records_that_cannot_be_read_now_are_there_later(
    is_cached: bool, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryFile, "is_cached", lambda *_: is_cached)
    async with desk() as it:
        await it.enter("a")
        await fetch_in_vain(it, "a", 0)
        assert "t-0 cannot be read" in it.broker.lines
        assert await it.fetch("a", 1) == [(0, 9, 1)]


@pytest.mark.parametrize("is_cached", [True, False])
async def test_a_fetch_that_waits_is_told_that_records_cannot_be_read(
    is_cached: bool, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryFile, "is_cached", lambda *_: is_cached)
    async with desk() as it:
        await it.enter("a")
        assert await it.fetch("a", 0) == [(0, 9, 1)]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fetch_in_vain, it, "b", 0)
            await trio.sleep(0.05)
            it.broker.broker.produce("t", some_batch(1))
        assert await it.fetch("b", 1) == [(10, 10, 1)]


async def test_a_topic_is_forgotten_once_the_group_has_written_so(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk() as it:
        await it.enter("a")
        await it.beat("a", -1)
        delete_states = group_admin._delete_states

        async def delete_and_lose_a_replica(*asked: Any) -> Any:
            outcomes = await delete_states(*asked)
            monkeypatch.setattr(LeaderLog, "append", refuse)
            return outcomes

        def refuse(*_: object) -> NoReturn:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)

        monkeypatch.setattr(group_admin, "_delete_states", delete_and_lose_a_replica)
        request = DeleteShareGroupOffsetsRequest(
            group_id="g", topics=[DeleteShareGroupOffsetsRequestTopic(topic_name="t")]
        )
        answer = await it.ask(request, 0)
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert answer.error_message == "The coordinator is not available."
        monkeypatch.undo()
        answer = await it.ask(request, 0)
        assert [each.error_code for each in answer.responses] == [ErrorCode.NONE]


async def test_the_state_topic_is_not_made_for_nothing(autojump_clock: MockClock) -> None:
    async with desk() as it:
        assert await it.standing() == []
        await it.ask(
            ShareGroupHeartbeatRequest(
                group_id="g", member_id="a", member_epoch=0, subscribed_topic_names=["nowhere"]
            ),
            1,
        )
        await it.beat("a", -1)
        assert await it.delete_group() is ErrorCode.NONE
        assert SHARE_GROUP_STATE not in it.broker.broker.services.image.topics


async def test_without_the_state_topic_there_is_no_coordinator(autojump_clock: MockClock) -> None:
    """Why the topic cannot be made is the operator's business; members and tools are to try again."""
    async with desk() as it:
        it.broker.topic_maker.refusal = KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR)
        assert await it.fetch("a", 0) == [], "the coordinator is asked for some seconds"
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await it.fetch("a", 1, error=error, wait_ms=60_000) == []
        assert await it.alter(5) is error
        assert await it.standing() == []


async def test_the_state_topic_is_made_as_soon_as_that_can_be(autojump_clock: MockClock) -> None:
    async with desk() as it:
        it.broker.topic_maker.refusal = KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR)
        async with trio.open_nursery() as nursery:

            async def let_it_be_made() -> None:
                await trio.sleep(RETRY_SECONDS * 1.5)
                it.broker.topic_maker.refusal = None

            nursery.start_soon(let_it_be_made)
            assert await it.alter(5) is ErrorCode.NONE
        assert await it.fetch("a", 0) == [(5, 9, 1)]


async def test_a_state_topic_whose_disk_has_failed_is_left_alone(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    async with desk() as it:
        await it.enter("a")
        await it.fetch("a", 0)
        coordinator: ShareCoordinator = it.broker.broker.services.share_coordinator
        monkeypatch.setattr(it.broker.broker.partitions, "leader", refuse)
        for partition in coordinator.partitions:  # the controller has not heard of it yet
            coordinator.prune(partition)
        monkeypatch.undo()
        assert "cannot be pruned: KAFKA_STORAGE_ERROR" in it.broker.lines


async def test_damage_ends_a_fetch_and_not_the_broker(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryFile, "pread", lambda file, size, position: b"\xff" * size)
    monkeypatch.setattr(MemoryFile, "is_cached", lambda *_: False)
    async with desk() as it:
        it.broker.broker.produce("t", some_batch(1, size=2 * FIRST_READ_BYTES))
        await it.enter("a")
        assert await it.fetch("a", 0, error=ErrorCode.CORRUPT_MESSAGE) == []


async def fetch_in_vain(it: Desk, member: str, epoch: int) -> None:
    """The disk refuses once to give the records."""
    file_system = it.broker.broker.file_system
    file_system.refuse("read", errno.EIO, path_suffix="/t-0/00000000000000000000.log")
    assert await it.fetch(member, epoch, error=ErrorCode.UNKNOWN_SERVER_ERROR) == []
    assert not file_system.refuses
