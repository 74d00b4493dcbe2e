"""AlterPartitionReassignments (45): give partitions other replicas, or give that up (KIP-455, KIP-860)."""

from collections.abc import Iterable

from broker.controller.decision import Decision
from broker.controller.reassignments import Reassignment, alter_reassignments
from broker.controller.start import topic_rules
from broker.metadata.image import MetadataImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

Outcomes = list[KafkaError | None]


def handle(
    request: AlterPartitionReassignmentsRequest, call: Call
) -> AlterPartitionReassignmentsResponse | Waiting[AlterPartitionReassignmentsResponse]:
    if not request.topics:
        return AlterPartitionReassignmentsResponse()
    services = call.services
    wanted = [
        Reassignment(topic.name, partition.partition_index, partition.replicas)
        for topic in request.topics
        for partition in topic.partitions
    ]
    may_change = request.allow_replication_factor_change

    def command(image: MetadataImage) -> Decision[Outcomes]:
        rules = topic_rules(services, image)
        return alter_reassignments(image, wanted, rules, may_change_replication_factor=may_change)

    def build(outcome: Outcomes | KafkaError) -> AlterPartitionReassignmentsResponse:
        if isinstance(outcome, KafkaError):
            return error_response(request, outcome.code)
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=may_change,
            error_message=None,
            responses=topics_of(request, outcome),
        )

    return services.controller.answer(command, build, timeout_ms=request.timeout_ms)


def topics_of(
    request: AlterPartitionReassignmentsRequest, outcomes: Iterable[KafkaError | None]
) -> list[ReassignableTopicResponse]:
    """The outcomes of all partitions, in the order in which they were named."""
    rest = iter(outcomes)
    return [
        ReassignableTopicResponse(
            name=topic.name,
            partitions=[
                ReassignablePartitionResponse(
                    partition_index=partition.partition_index,
                    error_code=ErrorCode.NONE if error is None else error.code,
                    error_message=None if error is None else error.message,
                )
                for partition, error in zip(topic.partitions, rest, strict=False)
            ],
        )
        for topic in request.topics
    ]


def error_response(
    request: AlterPartitionReassignmentsRequest, code: ErrorCode
) -> AlterPartitionReassignmentsResponse:
    """Kafka puts the code above the partitions and beside each."""
    everywhere = [KafkaError(code) for topic in request.topics for _ in topic.partitions]
    return AlterPartitionReassignmentsResponse(
        error_code=code, error_message=None, responses=topics_of(request, everywhere)
    )
