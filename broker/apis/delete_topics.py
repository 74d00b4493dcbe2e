"""DeleteTopics (20): remove topics, by name or, from version 6 on, by id."""

from collections import Counter
from typing import NamedTuple

from broker.controller.decision import Decision
from broker.controller.topics import TakePermits, delete_topics
from broker.metadata.image import MetadataImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.quotas.mutations import mutation_quota
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from protocol.uuids import ZERO_UUID

STRICT_QUOTA_VERSION = 5  # KIP-599


class Asked(NamedTuple):
    """What a request names, sorted out."""

    names: list[str]
    ids: list[bytes]
    duplicate_ids: set[bytes]
    refused: list[DeletableTopicResult]


def handle(request: DeleteTopicsRequest, call: Call) -> DeleteTopicsResponse | Waiting[DeleteTopicsResponse]:
    services = call.services
    if not services.config.get("delete.topic.enable"):
        # TOPIC_DELETION_DISABLED came with version 3.
        is_known = call.version >= 3
        code = ErrorCode.TOPIC_DELETION_DISABLED if is_known else ErrorCode.INVALID_REQUEST
        return error_response(request, code)
    asked = sort_out(request)
    if not asked.names and not asked.ids:
        return DeleteTopicsResponse(responses=asked.refused)
    quota = mutation_quota(call, strict_from=STRICT_QUOTA_VERSION)

    def command(image: MetadataImage) -> Decision[list[DeletableTopicResult]]:
        return delete_asked(image, asked, quota.take)

    def build(outcome: list[DeletableTopicResult] | KafkaError) -> DeleteTopicsResponse:
        quota.charge()
        if isinstance(outcome, KafkaError):
            return error_response(request, outcome.code)
        return DeleteTopicsResponse(responses=asked.refused + outcome)

    return services.controller.answer(command, build, timeout_ms=request.timeout_ms)


def sort_out(request: DeleteTopicsRequest) -> Asked:
    """Names and ids that are given once and alone, and the refusal of all others."""
    names = Counter(request.topic_names)
    ids: Counter[bytes] = Counter()
    refused = []
    for topic in request.topics:
        if topic.name is None and topic.topic_id == ZERO_UUID:
            refused.append(_result(None, ZERO_UUID, _invalid("Neither topic name nor id were specified.")))
        elif topic.name is None:
            ids[topic.topic_id] += 1
        elif topic.topic_id == ZERO_UUID:
            names[topic.name] += 1
        else:
            refused.append(
                _result(
                    topic.name,
                    topic.topic_id,
                    _invalid("You may not specify both topic name and topic id."),
                )
            )
    duplicate_names = [name for name, count in names.items() if count > 1]
    duplicate_ids = [topic_id for topic_id, count in ids.items() if count > 1]
    refused += [_result(name, ZERO_UUID, _invalid("Duplicate topic name.")) for name in duplicate_names]
    refused += [_result(None, topic_id, _invalid("Duplicate topic id.")) for topic_id in duplicate_ids]
    return Asked(
        names=[name for name, count in names.items() if count == 1],
        ids=[topic_id for topic_id, count in ids.items() if count == 1],
        duplicate_ids=set(duplicate_ids),
        refused=refused,
    )


def delete_asked(
    image: MetadataImage, asked: Asked, take_permits: TakePermits
) -> Decision[list[DeletableTopicResult]]:
    """Delete what exists; the reply says what became of each name and id."""
    results = []
    found: dict[bytes, str] = {}
    for topic_id in asked.ids:
        topic = image.topics_by_id.get(topic_id)
        if topic is None:
            error = KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
            results.append(_result(None, topic_id, error))
        else:
            found[topic_id] = topic.name
    for name in asked.names:
        topic = image.topics.get(name)
        if topic is None:
            error = KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
            )
            results.append(_result(name, ZERO_UUID, error))
        elif topic.id in found or topic.id in asked.duplicate_ids:
            found.pop(topic.id, None)
            error = _invalid("The provided topic name maps to an ID that was already supplied.")
            results.append(_result(name, topic.id, error))
        else:
            found[topic.id] = name
    decision = delete_topics(image, found, take_permits)
    results += [_result(found[topic_id], topic_id, error) for topic_id, error in decision.reply.items()]
    return Decision(decision.records, results)


def error_response(request: DeleteTopicsRequest, code: ErrorCode) -> DeleteTopicsResponse:
    """An error of the whole request stands, without a text, with each topic."""
    error = KafkaError(code)
    results = [_result(name, ZERO_UUID, error) for name in request.topic_names]
    results += [_result(topic.name, topic.topic_id, error) for topic in request.topics]
    return DeleteTopicsResponse(responses=results)


def _result(name: str | None, topic_id: bytes, error: KafkaError | None) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name,
        topic_id=topic_id,
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
    )


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
