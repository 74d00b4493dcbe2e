"""CreatePartitions (37): give topics more partitions."""

from collections import Counter

from broker.controller.decision import Decision
from broker.controller.topics import Growth, create_partitions
from broker.metadata.image import MetadataImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.quotas.mutations import mutation_quota
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

STRICT_QUOTA_VERSION = 3  # KIP-599


def handle(
    request: CreatePartitionsRequest, call: Call
) -> CreatePartitionsResponse | Waiting[CreatePartitionsResponse]:
    quota = mutation_quota(call, strict_from=STRICT_QUOTA_VERSION)
    counts = Counter(topic.name for topic in request.topics)
    duplicates = [name for name, count in counts.items() if count > 1]
    wanted = [_growth(topic) for topic in request.topics if counts[topic.name] == 1]
    chance = call.services.identifiers.random

    def command(image: MetadataImage) -> Decision[dict[str, KafkaError | None]]:
        decision = create_partitions(image, wanted, chance, quota.take)
        return Decision([], decision.reply) if request.validate_only else decision

    def build(outcome: dict[str, KafkaError | None] | KafkaError) -> CreatePartitionsResponse:
        quota.charge()
        if isinstance(outcome, KafkaError):
            return CreatePartitionsResponse(
                results=[_result(topic.name, outcome) for topic in request.topics]
            )
        twice = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        results = [_result(name, twice) for name in duplicates]
        results += [_result(name, error) for name, error in outcome.items()]
        return CreatePartitionsResponse(results=results)

    if not wanted:
        return build({})
    return call.services.controller.answer(command, build, timeout_ms=request.timeout_ms)


def _growth(topic: CreatePartitionsTopic) -> Growth:
    assignments = topic.assignments
    return Growth(
        topic.name,
        topic.count,
        None if assignments is None else [assignment.broker_ids for assignment in assignments],
    )


def _result(name: str, error: KafkaError | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name,
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
    )


def error_response(request: CreatePartitionsRequest, code: ErrorCode) -> CreatePartitionsResponse:
    """An error of the whole request stands with each topic."""
    return CreatePartitionsResponse(
        results=[_result(topic.name, KafkaError(code)) for topic in request.topics]
    )
