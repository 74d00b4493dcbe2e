"""AssignReplicasToDirs (73): a broker tells in which log directories its replicas lie (KIP-858)."""

from collections.abc import Sequence

from broker.controller.decision import Decision
from broker.controller.directories import Assignment, assign_replicas
from broker.controller.start import topic_rules
from broker.metadata.image import MetadataImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
)


def handle(
    request: AssignReplicasToDirsRequest, call: Call
) -> AssignReplicasToDirsResponse | Waiting[AssignReplicasToDirsResponse]:
    services = call.services
    assignments = [
        Assignment(topic.topic_id, partition.partition_index, directory.id)
        for directory in request.directories
        for topic in directory.topics
        for partition in topic.partitions
    ]

    def command(image: MetadataImage) -> Decision[Sequence[ErrorCode]]:
        rules = topic_rules(services, image)
        return assign_replicas(image, request.broker_id, request.broker_epoch, assignments, rules)

    def build(outcome: Sequence[ErrorCode] | KafkaError) -> AssignReplicasToDirsResponse:
        if isinstance(outcome, KafkaError):
            return AssignReplicasToDirsResponse(error_code=outcome.code)
        return AssignReplicasToDirsResponse(directories=directories_of(request, outcome))

    return services.controller.answer(command, build, timeout_ms=None)


def directories_of(
    request: AssignReplicasToDirsRequest, codes: Sequence[ErrorCode]
) -> list[AssignReplicasToDirsResponseDirectoryData]:
    """What became of all assignments, in the order in which they were named."""
    rest = iter(codes)
    return [
        AssignReplicasToDirsResponseDirectoryData(
            id=directory.id,
            topics=[
                AssignReplicasToDirsResponseTopicData(
                    topic_id=topic.topic_id,
                    partitions=[
                        AssignReplicasToDirsResponsePartitionData(
                            partition_index=partition.partition_index, error_code=next(rest)
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in directory.topics
            ],
        )
        for directory in request.directories
    ]
