"""A broker with several log directories: where replicas go, and what becomes of those in one that fails."""

import errno
from collections.abc import Sequence

import pytest
import trio
from trio.testing import MockClock

from broker.errors import ErrorCode, KafkaError
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from protocol.stored.metadata_records import FeatureLevelRecord
from protocol.uuids import UNASSIGNED_DIRECTORY
from storage.errors import DiskFailure, DuplicateReplica
from storage.memory_filesystem import MemoryFileSystem
from tests.broker.partitions.one_broker import (
    NODE_ID,
    OneBroker,
    answer_of,
    directory_id,
    one_broker,
    produce_request,
    setting_records,
    settle,
    some_batch,
)

A, B, C = PATHS = ("/a", "/b", "/c")


def folders(broker: OneBroker, path: str) -> list[str]:
    return sorted(broker.file_system.list_directories(path))


def everywhere(broker: OneBroker, paths: Sequence[str] = PATHS) -> list[list[str]]:
    return [folders(broker, path) for path in paths]


def assigned(broker: OneBroker, topic: str) -> list[bytes]:
    return [partition.directory_of(NODE_ID) for partition in broker.image.topics[topic].partitions]


def cordon(broker: OneBroker, text: str) -> None:
    (record,) = setting_records(str(NODE_ID), {"cordoned.log.dirs": text})
    record.resource_type = 4  # type: ignore[attr-defined]
    broker.config.apply_dynamic({}, {"cordoned.log.dirs": text})
    broker.apply(record)


class TestPlacement:
    async def test_new_replicas_go_where_there_are_fewest_and_the_cluster_learns_where(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            broker.create_topic("t", partitions=4, directory=UNASSIGNED_DIRECTORY)
            await settle()
            assert [len(names) for names in everywhere(broker)] == [2, 1, 1]
            for index, directory in enumerate(assigned(broker, "t")):
                (home,) = [path for path in PATHS if f"t-{index}" in folders(broker, path)]
                assert directory == directory_id(home)

    async def test_the_places_of_many_new_replicas_are_told_together(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            changes = []
            broker.listeners.append(lambda image, change: changes.append(change))
            broker.create_topic("t", partitions=20, directory=UNASSIGNED_DIRECTORY)
            await settle()
            assert len(changes) == 2
            assert UNASSIGNED_DIRECTORY not in assigned(broker, "t")

    async def test_a_move_does_not_wait_for_many_new_replicas(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            broker.create_topic("t", directory=directory_id(A))
            await settle()
            broker.partitions.assignments.gather()
            await broker.partitions.moves.move(("t", 0), B)
            await settle()
            assert assigned(broker, "t") == [directory_id(B)]

    async def test_the_controller_may_have_decided(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            broker.create_topic("t", partitions=2, directory=directory_id(C))
            await settle()
            assert everywhere(broker) == [[], [], ["t-0", "t-1"]]

    async def test_one_that_is_asked_for_at_once_is_placed_too(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            broker.hold_threads()
            broker.create_topic("t", directory=UNASSIGNED_DIRECTORY)
            broker.partitions.leader("t", 0)
            assert assigned(broker, "t") == [directory_id(A)]
            broker.release_threads()

    async def test_replicas_whose_folders_are_gone_are_made_anew_and_named(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            for name, path in (("t", A), ("elsewhere", B), ("unknown", C)):
                broker.create_topic(name, directory=directory_id(path))
                await settle()
                for _ in range(3):
                    broker.produce(name)
            for directory in broker.directories:
                directory.begin_checkpoint()()
                directory.begin_high_watermark_checkpoint()()
            image, file_system = broker.image, broker.file_system
        file_system.remove_tree("/a/t-0")
        move_tree(file_system, "/b/elsewhere-0", "/c/elsewhere-0")
        file_system.rename("/c/unknown-0", f"/c/unknown-0.{'0' * 32}-delete")
        async with one_broker(paths=PATHS, file_system=file_system, image=image) as broker:
            await settle()
            assert folders(broker, A) == ["t-0"]
            (line,) = [line for line in broker.lines.getvalue().splitlines() if "are gone" in line]
            assert " WARN " in line
            assert line.endswith(" are empty now: t-0 (offsets up to 3)")
            assert "/a: " in line

    async def test_what_lies_elsewhere_than_the_metadata_say_is_told_again(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            broker.create_topic("t", directory=directory_id(B))
            await settle()
            image, file_system = broker.image, broker.file_system
        move_tree(file_system, "/b/t-0", "/a/t-0")
        async with one_broker(paths=PATHS, file_system=file_system, image=image) as broker:
            await settle()
            assert assigned(broker, "t") == [directory_id(A)]
            assert everywhere(broker) == [["t-0"], [], []]

    async def test_assignments_wait_for_a_controller_that_cannot_write(
        self, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with one_broker(paths=PATHS) as broker:
            submit = broker.submit
            refusals = [KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)]

            def refuse_once(command: object, done: object) -> None:
                if refusals:
                    done(refusals.pop())  # type: ignore[operator]
                else:
                    submit(command, done)  # type: ignore[arg-type]

            monkeypatch.setattr(broker, "submit", refuse_once)
            broker.create_topic("t", directory=UNASSIGNED_DIRECTORY)
            await settle()
            assert assigned(broker, "t") == [UNASSIGNED_DIRECTORY]
            await trio.sleep(2)
            assert assigned(broker, "t") == [directory_id(A)]

    async def test_a_directory_that_refuses_a_replica_is_passed_over(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            broker.create_topic("full", directory=directory_id(A))
            await settle()
            broker.file_system.refuse("write", errno.EIO, path_suffix="/b/t-0/partition.metadata.tmp")
            broker.create_topic("t", directory=UNASSIGNED_DIRECTORY)
            await settle()
            assert folders(broker, C) == ["t-0"]
            assert list(broker.partitions.places.offline) == [B]


class TestCordonedDirectories:
    @pytest.mark.acts("cordoned.log.dirs")
    async def test_they_take_no_new_replicas(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            broker.apply(FeatureLevelRecord(name="metadata.version", feature_level=30))
            cordon(broker, "/a,/b")
            assert broker.image.brokers[NODE_ID].cordoned_directories == (directory_id(A), directory_id(B))
            broker.create_topic("t", partitions=3, directory=UNASSIGNED_DIRECTORY)
            await settle()
            assert everywhere(broker) == [[], [], ["t-0", "t-1", "t-2"]]
            cordon(broker, "")
            assert broker.image.brokers[NODE_ID].cordoned_directories == ()

    async def test_all_of_them(self) -> None:
        async with one_broker({"cordoned.log.dirs": "*"}, paths=PATHS) as broker:
            broker.apply(FeatureLevelRecord(name="metadata.version", feature_level=30))
            cordon(broker, "*")
            broker.create_topic("t", directory=UNASSIGNED_DIRECTORY)
            await settle()
            assert broker.produce("t").error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert everywhere(broker) == [[], [], []]

    async def test_at_an_older_level_the_broker_heeds_them_alone(self) -> None:
        """As Kafka does with what its settings say from the start: nobody is told of it."""
        async with one_broker({"cordoned.log.dirs": "/a,/b"}, paths=PATHS) as broker:
            broker.apply(FeatureLevelRecord(name="metadata.version", feature_level=29))
            broker.create_topic("t", directory=UNASSIGNED_DIRECTORY)
            await settle()
            assert folders(broker, C) == ["t-0"]
            assert broker.image.brokers[NODE_ID].cordoned_directories is None


class TestFailure:
    async def test_one_directory_goes_and_the_others_go_on(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            for topic, path in (("a", A), ("b", B), ("c", C)):
                broker.create_topic(topic, directory=directory_id(path))
                assert broker.produce(topic).error_code == 0
            broker.file_system.refuse("write", errno.EIO, path_suffix="/b/b-0/00000000000000000000.log")
            assert broker.produce("b").error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert broker.produce("b").error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert broker.fetch("b").error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert broker.produce("a").error_code == broker.produce("c").error_code == 0
            await settle()
            registered = broker.image.brokers[NODE_ID]
            assert registered.directories == (directory_id(A), directory_id(C))
            assert broker.image.topics["b"].partitions[0].leader == -1
            assert broker.image.topics["a"].partitions[0].leader == NODE_ID
            assert "log directory /b has failed" in broker.lines.getvalue()
            assert broker.file_system.lock("/b/.lock") is not None, "it is let go"

    async def test_nothing_is_made_again_that_may_lie_there(self) -> None:
        async with one_broker(paths=(A, B)) as broker:
            topic_id = broker.create_topic("b", directory=directory_id(B))
            await settle()
            broker.file_system.refuse("write", errno.EIO, path_suffix="b-0/00000000000000000000.log")
            broker.produce("b")
            broker.change_leader(topic_id, NODE_ID)
            await settle()
            assert folders(broker, A) == []
            # A new topic of that name is another one, and is served from what is left.
            broker.delete_topic(topic_id)
            broker.create_topic("b", directory=UNASSIGNED_DIRECTORY)
            assert broker.produce("b").error_code == 0
            assert folders(broker, A) == ["b-0"]
            image, file_system = broker.image, broker.file_system
        async with one_broker(paths=(A, B), file_system=file_system, image=image) as broker:
            assert folders(broker, A) == ["b-0"]
            (stray,) = folders(broker, B)
            assert stray.endswith("-stray")

    async def test_a_failed_fsync_takes_the_directory_only(self) -> None:
        async with one_broker(paths=(A, B)) as broker:
            broker.create_topic("b", directory=directory_id(B), settings={"flush.messages": "1"})
            await settle()
            broker.file_system.refuse("sync", errno.EIO, path_suffix="b-0/00000000000000000000.log")
            answer = broker.ask(produce_request("b"), 9)
            response = await answer_of(answer)
            assert response.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert list(broker.partitions.places.offline) == [B]

    async def test_a_read_that_fails_does_not_take_it(self) -> None:
        """Kafka answers with UNKNOWN_SERVER_ERROR and goes on, with a single directory as well."""
        async with one_broker(paths=(A, B)) as broker:
            broker.create_topic("b", directory=directory_id(B))
            broker.produce("b")
            broker.partitions.leader("b", 0).log._segments[0].close()
            broker.file_system.refuse("open", errno.EIO, path_suffix="b-0/00000000000000000000.log")
            assert broker.fetch("b").error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            assert broker.partitions.places.offline == {}
            assert broker.fetch("b").error_code == ErrorCode.NONE

    async def test_an_fsync_that_fails_where_the_log_was_before_keeps_nobody_waiting(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            broker.create_topic("b", directory=directory_id(B), settings={"flush.messages": "1"})
            await settle()
            broker.hold_threads()
            first = broker.ask(produce_request("b"), 9)
            await settle()
            leader = broker.partitions.leader("b", 0)
            other = leader.log
            broker.release_threads()
            await settle()
            assert (await answer_of(first)).responses[0].partition_responses[0].error_code == 0
            await broker.partitions.moves.move(("b", 0), C)
            await settle()
            assert leader.log is not other
            # As if the flush had been under way all the time.
            leader._is_flushing = True
            failure = DiskFailure("/b/b-0", "flush", OSError(errno.EIO, "gone"))
            assert broker.partitions.note_failure_of(other, failure)
            await broker.partitions._flush(leader)
            assert not leader._is_flushing
            answer = await answer_of(broker.ask(produce_request("b"), 9))
            assert answer.responses[0].partition_responses[0].base_offset == 1

    @pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE])
    async def test_a_process_without_descriptors_is_no_failure_of_a_directory(self, code: int) -> None:
        async with one_broker(paths=(A, B)) as broker:
            broker.create_topic("b", directory=directory_id(B))
            broker.produce("b")
            broker.partitions.leader("b", 0).log._segments[0].close()
            broker.file_system.refuse("open", code, path_suffix="b-0/00000000000000000000.log")
            broker.fetch("b")
            assert broker.partitions.places.offline == {}

    async def test_the_metadata_directory_and_the_last_one_stay(self) -> None:
        async with one_broker(paths=(A, B)) as broker:
            broker.create_topic("a", directory=directory_id(A))
            broker.create_topic("b", directory=directory_id(B))
            await settle()
            broker.file_system.refuse("write", errno.ENOSPC, path_suffix="a-0/00000000000000000000.log")
            assert broker.produce("a").error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert broker.produce("a").error_code == 0
            assert broker.partitions.places.offline == {}

    async def test_described_as_failed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async with one_broker(paths=(A, B)) as broker:
            broker.create_topic("b", directory=directory_id(B))
            await settle()
            broker.file_system.refuse("write", errno.EIO, path_suffix="b-0/00000000000000000000.log")
            broker.produce("b")
            await settle()
            monkeypatch.setattr("os.statvfs", lambda _: _Disk)
            response = await answer_of(broker.ask(DescribeLogDirsRequest(topics=None), 5))
            assert isinstance(response, DescribeLogDirsResponse)
            assert [(result.log_dir, result.error_code) for result in response.results] == [
                (A, 0),
                (B, ErrorCode.KAFKA_STORAGE_ERROR),
            ]


class _Disk:
    f_blocks = f_frsize = f_bavail = 1


class TestStart:
    async def test_with_a_directory_that_is_gone_its_partitions_are_not_made_again(self) -> None:
        async with one_broker(paths=(A, B)) as broker:
            broker.create_topic("b", directory=directory_id(B))
            broker.create_topic("a", directory=directory_id(A))
            assert broker.produce("a").error_code == 0
            image, file_system = broker.image, broker.file_system
        async with one_broker(paths=(A, B), offline=(B,), file_system=file_system, image=image) as broker:
            await settle()
            assert folders(broker, A) == ["a-0"]
            assert broker.produce("a").error_code == 0
            broker.create_topic("new", directory=UNASSIGNED_DIRECTORY)
            assert broker.produce("new").error_code == 0

    async def test_without_a_directory_that_is_not_named_any_more_its_partitions_wait(self) -> None:
        """Kafka makes an empty one elsewhere, and leads that from its next start on."""
        async with one_broker(paths=(A, B)) as broker:
            broker.create_topic("b", partitions=2, directory=directory_id(B))
            broker.create_topic("a", directory=directory_id(A))
            assert broker.produce("b", some_batch(3)).error_code == 0
            await settle()
            image, file_system = broker.image, broker.file_system
        async with one_broker(paths=(A, C), file_system=file_system, image=image) as broker:
            await settle()
            assert everywhere(broker) == [["a-0"], ["b-0", "b-1"], []]
            assert "2 partitions, b-0 among them, must wait for log directories" in broker.lines.getvalue()
            assert assigned(broker, "b") == [directory_id(B)] * 2
            image = broker.image
        async with one_broker(paths=(A, B), file_system=file_system, image=image) as broker:
            assert broker.fetch("b").high_watermark == 3
            assert "lie in log directories" not in broker.lines.getvalue()

    async def test_a_stray_that_cannot_be_renamed_takes_its_directory(self) -> None:
        async with one_broker(paths=(A, B)) as broker:
            topic_id = broker.create_topic("b", directory=directory_id(B))
            await settle()
            file_system = broker.file_system
            copy_tree(file_system, "/b/b-0", "/b/stray-0")
            image = broker.image
            assert topic_id
        file_system.refuse("rename", errno.EIO, path_suffix="/b/stray-0")
        async with one_broker(paths=(A, B), file_system=file_system, image=image) as broker:
            await settle()
            assert list(broker.partitions.places.offline) == [B]
            assert broker.image.topics["b"].partitions[0].leader == -1

    async def test_of_two_folders_the_one_counts_that_the_metadata_name(self) -> None:
        async with one_broker(paths=(A, B)) as broker:
            broker.create_topic("t", directory=directory_id(B))
            broker.produce("t", some_batch(3))
            image, file_system = broker.image, broker.file_system
        copy_tree(file_system, "/b/t-0", "/a/t-0")
        async with one_broker(paths=(A, B), file_system=file_system, image=image) as broker:
            assert folders(broker, B) == ["t-0"]
            (stray,) = folders(broker, A)
            assert stray.startswith("t-0.")
            assert stray.endswith("-stray")
            assert broker.fetch("t").high_watermark == 3

    async def test_of_two_folders_the_one_counts_that_is_of_this_topic(self) -> None:
        async with one_broker(paths=(A, B)) as broker:
            topic_id = broker.create_topic("t", directory=directory_id(B))
            await settle()
            copy_tree(broker.file_system, "/b/t-0", "/a/t-0")
            broker.delete_topic(topic_id)
            broker.create_topic("t", directory=directory_id(B))
            assert broker.produce("t", some_batch(3)).error_code == 0
            image, file_system = broker.image, broker.file_system
        async with one_broker(paths=(A, B), file_system=file_system, image=image) as broker:
            assert "t-0" in folders(broker, B)
            assert "t-0" not in folders(broker, A)
            assert broker.fetch("t").high_watermark == 3

    async def test_of_two_folders_none_counts_if_nothing_tells(self) -> None:
        async with one_broker(paths=(A, B, C)) as broker:
            broker.create_topic("t", directory=directory_id(C))
            await settle()
            image, file_system = broker.image, broker.file_system
        copy_tree(file_system, "/c/t-0", "/a/t-0")
        move_tree(file_system, "/c/t-0", "/b/t-0")
        with pytest.raises(DuplicateReplica, match="/a/t-0 and /b/t-0"):
            async with one_broker(paths=(A, B, C), file_system=file_system, image=image):
                pass


def copy_tree(file_system: MemoryFileSystem, source: str, target: str) -> None:
    file_system.make_directory(target)
    for name in file_system.list_names(source):
        content = file_system.read_file(f"{source}/{name}")
        file_system.open(f"{target}/{name}", create=True).pwrite(content, 0)


def move_tree(file_system: MemoryFileSystem, source: str, target: str) -> None:
    copy_tree(file_system, source, target)
    file_system.remove_tree(source)
