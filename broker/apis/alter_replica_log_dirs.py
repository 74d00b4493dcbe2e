"""AlterReplicaLogDirs (34): move replicas between the log directories of this broker (KIP-113)."""

from broker.errors import ErrorCode, error_code_of
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from storage.checkpoints import Replica


def handle(request: AlterReplicaLogDirsRequest, call: Call) -> Waiting[AlterReplicaLogDirsResponse]:
    """The answer comes when the moves have begun: each needs a folder first."""
    wanted: dict[Replica, str] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            # A partition that is named twice goes where it is named last, as in Kafka.
            wanted.update(((topic.name, partition), directory.path) for partition in topic.partitions)
    waiting: Waiting[AlterReplicaLogDirsResponse] = Waiting()

    async def answer() -> None:
        codes = {replica: await move(replica, path, call) for replica, path in wanted.items()}
        waiting.answer(respond(codes))

    call.services.partitions.start_soon(answer)
    return waiting


async def move(replica: Replica, path: str, call: Call) -> ErrorCode:
    """Begin to move one replica; return what is answered."""
    try:
        await call.services.partitions.moves.move(replica, path)
    except Exception as error:
        code = error_code_of(error)
        if code is ErrorCode.UNKNOWN_SERVER_ERROR:
            call.services.log.failure(f"{replica[0]}-{replica[1]} cannot be moved", error)
        # Kafka kept this code when it found a better one, so that old tools go on understanding it.
        return ErrorCode.REPLICA_NOT_AVAILABLE if code is ErrorCode.NOT_LEADER_OR_FOLLOWER else code
    return ErrorCode.NONE


def respond(codes: dict[Replica, ErrorCode]) -> AlterReplicaLogDirsResponse:
    """The results, by topic."""
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for (name, partition), code in codes.items():
        topic = topics.setdefault(name, AlterReplicaLogDirTopicResult(topic_name=name))
        topic.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=partition, error_code=code))
    return AlterReplicaLogDirsResponse(results=list(topics.values()))


def error_response(request: AlterReplicaLogDirsRequest, code: ErrorCode) -> AlterReplicaLogDirsResponse:
    """Kafka puts the code beside every partition."""
    return respond(
        {
            (topic.name, partition): code
            for directory in request.dirs
            for topic in directory.topics
            for partition in topic.partitions
        }
    )
