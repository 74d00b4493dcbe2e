"""AlterPartition (56): a leader proposes who is in sync with it (KIP-497, KIP-841, KIP-903)."""

from collections.abc import Sequence

from broker.controller.decision import Decision
from broker.controller.partitions import IsrMember, IsrProposal, Verdict, alter_partitions
from broker.controller.start import topic_rules
from broker.metadata.image import MetadataImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)

EPOCHS_VERSION = 3  # KIP-903


def handle(
    request: AlterPartitionRequest, call: Call
) -> AlterPartitionResponse | Waiting[AlterPartitionResponse]:
    services = call.services
    if not request.topics:
        return AlterPartitionResponse()

    def members(partition: AlterPartitionRequestPartitionData) -> list[IsrMember]:
        if call.version < EPOCHS_VERSION:
            return [IsrMember(broker_id) for broker_id in partition.new_isr]
        return [IsrMember(member.broker_id, member.broker_epoch) for member in partition.new_isr_with_epochs]

    proposals = [
        IsrProposal(
            topic.topic_id,
            partition.partition_index,
            partition.leader_epoch,
            partition.partition_epoch,
            members(partition),
            partition.leader_recovery_state,
        )
        for topic in request.topics
        for partition in topic.partitions
    ]

    def command(image: MetadataImage) -> Decision[list[Verdict]]:
        rules = topic_rules(services, image)
        return alter_partitions(image, request.broker_id, request.broker_epoch, proposals, rules)

    def build(outcome: list[Verdict] | KafkaError) -> AlterPartitionResponse:
        if isinstance(outcome, KafkaError):
            return AlterPartitionResponse(error_code=outcome.code)
        return AlterPartitionResponse(topics=topics_of(request, outcome))

    return services.controller.answer(command, build, timeout_ms=None)


def topics_of(
    request: AlterPartitionRequest, verdicts: Sequence[Verdict]
) -> list[AlterPartitionResponseTopicData]:
    """The verdicts on all proposals, in the order in which they came."""
    rest = iter(verdicts)
    return [
        AlterPartitionResponseTopicData(
            topic_id=topic.topic_id,
            partitions=[_partition(partition.partition_index, next(rest)) for partition in topic.partitions],
        )
        for topic in request.topics
    ]


def _partition(index: int, verdict: Verdict) -> AlterPartitionResponsePartitionData:
    if isinstance(verdict, ErrorCode):
        return AlterPartitionResponsePartitionData(partition_index=index, error_code=verdict)
    return AlterPartitionResponsePartitionData(
        partition_index=index,
        leader_id=verdict.leader,
        leader_epoch=verdict.leader_epoch,
        isr=list(verdict.isr),
        leader_recovery_state=verdict.leader_recovery_state,
        partition_epoch=verdict.partition_epoch,
    )
