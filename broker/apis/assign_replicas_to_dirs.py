"""AssignReplicasToDirs (73): a broker tells in which directories its replicas lie (KIP-858)."""

from collections.abc import Iterator, Sequence

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

TIMEOUT_MS = 60_000


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
        return _answer(request, iter(outcome))

    return services.controller.answer(command, build, timeout_ms=TIMEOUT_MS)


def _answer(request: AssignReplicasToDirsRequest, codes: Iterator[ErrorCode]) -> AssignReplicasToDirsResponse:
    """The request's own order, with what became of each."""
    return AssignReplicasToDirsResponse(
        directories=[
            AssignReplicasToDirsResponseDirectoryData(
                id=directory.id,
                topics=[
                    AssignReplicasToDirsResponseTopicData(
                        topic_id=topic.topic_id,
                        partitions=[
                            AssignReplicasToDirsResponsePartitionData(
                                partition_index=partition.partition_index, error_code=next(codes)
                            )
                            for partition in topic.partitions
                        ],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in request.directories
        ]
    )
