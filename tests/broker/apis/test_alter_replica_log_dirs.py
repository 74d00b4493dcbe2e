"""AlterReplicaLogDirs: who answers what, in every version."""

import pytest

from broker.apis.alter_replica_log_dirs import error_response
from broker.errors import ErrorCode
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from tests.broker.partitions.one_broker import OneBroker, answer_of, directory_id, one_broker, settle

A, B = "/a", "/b"


def request(*wishes: tuple[str, str, list[int]]) -> AlterReplicaLogDirsRequest:
    return AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=name, partitions=partitions)])
            for path, name, partitions in wishes
        ]
    )


def codes(response: AlterReplicaLogDirsResponse) -> dict[str, dict[int, int]]:
    return {
        topic.topic_name: {result.partition_index: result.error_code for result in topic.partitions}
        for topic in response.results
    }


async def ask(
    broker: OneBroker, *wishes: tuple[str, str, list[int]], version: int = 2
) -> dict[str, dict[int, int]]:
    response = await answer_of(broker.ask(request(*wishes), version))
    return codes(AlterReplicaLogDirsResponse.decode(response.encode(version), version))


@pytest.mark.parametrize("version", [1, 2])
async def test_each_partition_has_its_result(version: int) -> None:
    async with one_broker(paths=(A, B)) as broker:
        broker.create_topic("t", partitions=3, directory=directory_id(A))
        broker.create_topic("u", directory=directory_id(A))
        await settle()
        assert await ask(
            broker, (B, "t", [0, 1, 7]), ("/c", "t", [2]), (B, "u", [0]), (B, "v", [0]), version=version
        ) == {
            "t": {
                0: ErrorCode.NONE,
                1: ErrorCode.NONE,
                7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                2: ErrorCode.LOG_DIR_NOT_FOUND,
            },
            "u": {0: ErrorCode.NONE},
            "v": {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
        }
        homes = broker.partitions.places.homes
        assert [homes["t", index].path for index in range(3)] == [B, B, A]
        assert homes["u", 0].path == B


async def test_of_two_directories_for_one_partition_the_last_counts() -> None:
    async with one_broker(paths=(A, B)) as broker:
        broker.create_topic("t", directory=directory_id(A))
        await settle()
        assert await ask(broker, (B, "t", [0]), (A, "t", [0])) == {"t": {0: ErrorCode.NONE}}
        assert broker.partitions.places.homes["t", 0].path == A
        assert await ask(broker, (B, "t", [0]), ("/c", "t", [0])) == {"t": {0: ErrorCode.LOG_DIR_NOT_FOUND}}


async def test_a_replica_that_is_not_here_has_the_code_of_old_times() -> None:
    async with one_broker(paths=(A, B)) as broker:
        topic_id = broker.create_topic("t", directory=directory_id(A))
        broker.register(2)
        broker.move_replicas(topic_id, [2])
        assert await ask(broker, (B, "t", [0])) == {"t": {0: ErrorCode.REPLICA_NOT_AVAILABLE}}


async def test_what_nobody_expected_has_a_line_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(replica: object, path: str) -> None:
        raise ZeroDivisionError("no such thing")

    async with one_broker(paths=(A, B)) as broker:
        monkeypatch.setattr(broker.partitions.moves, "move", fail)
        assert await ask(broker, (B, "t", [0])) == {"t": {0: ErrorCode.UNKNOWN_SERVER_ERROR}}
        assert "t-0 cannot be moved" in broker.lines.getvalue()


async def test_nothing_asked_for() -> None:
    async with one_broker(paths=(A, B)) as broker:
        assert await ask(broker) == {}
        assert await ask(broker, (B, "t", [])) == {}


def test_an_error_of_the_whole_request_stands_beside_every_partition() -> None:
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    answer = error_response(request((A, "t", [0, 1]), (B, "u", [2])), code)
    assert codes(answer) == {"t": {0: code, 1: code}, "u": {2: code}}
