"""CreateTopics (19): make new topics."""

from collections.abc import Sequence

from broker.config.layers import describe_topic
from broker.controller.automatic_topics import topic_defaults
from broker.controller.decision import Decision
from broker.controller.topics import NewTopic, TopicResult, create_topics
from broker.metadata.image import MetadataImage
from broker.metadata.topic_names import CLUSTER_METADATA
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.quotas.mutations import mutation_quota
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

STRICT_QUOTA_VERSION = 6  # KIP-599


def handle(request: CreateTopicsRequest, call: Call) -> CreateTopicsResponse | Waiting[CreateTopicsResponse]:
    services = call.services
    quota = mutation_quota(call, strict_from=STRICT_QUOTA_VERSION)
    refused = refuse(request.topics)
    topics = [topic for topic in request.topics if topic.name not in refused]

    def command(image: MetadataImage) -> Decision[dict[str, TopicResult]]:
        wanted = [_wanted(topic) for topic in topics]
        decision = create_topics(image, wanted, topic_defaults(services), quota.take)
        return Decision([], decision.reply) if request.validate_only else decision

    def build(outcome: dict[str, TopicResult] | KafkaError) -> CreateTopicsResponse:
        quota.charge()
        if isinstance(outcome, KafkaError):
            return CreateTopicsResponse(topics=[_refusal(topic.name, outcome) for topic in request.topics])
        results = [_result(topic, outcome[topic.name], call) for topic in topics]
        results += [_refusal(name, error) for name, error in refused.items()]
        return CreateTopicsResponse(topics=results)

    if not topics:
        return build({})
    return services.controller.answer(command, build, timeout_ms=request.timeout_ms)


def refuse(topics: Sequence[CreatableTopic]) -> dict[str, KafkaError]:
    """What need not be put to the controller: names given twice, and the metadata log's."""
    seen: set[str] = set()
    refused: dict[str, KafkaError] = {}
    for topic in topics:
        if topic.name in seen:
            refused[topic.name] = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        seen.add(topic.name)
    if CLUSTER_METADATA in seen and CLUSTER_METADATA not in refused:
        refused[CLUSTER_METADATA] = KafkaError(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {CLUSTER_METADATA} is prohibited."
        )
    return refused


def _wanted(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        [(assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments],
        {config.name: config.value for config in topic.configs},
    )


def _result(topic: CreatableTopic, result: TopicResult, call: Call) -> CreatableTopicResult:
    if isinstance(result, KafkaError):
        return _refusal(topic.name, result)
    return CreatableTopicResult(
        name=topic.name,
        topic_id=result.id,
        error_message=None,
        num_partitions=result.partition_count,
        replication_factor=result.replication_factor,
        configs=_settings(topic, call) if call.version >= 5 else [],  # KIP-525
    )


def _settings(topic: CreatableTopic, call: Call) -> list[CreatableTopicConfigs]:
    overrides = {config.name: config.value for config in topic.configs if config.value is not None}
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=None if entry.is_sensitive else entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in describe_topic(call.services.config, overrides)
    ]


def _refusal(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)


def error_response(request: CreateTopicsRequest, code: ErrorCode) -> CreateTopicsResponse:
    """An error of the whole request stands with each topic."""
    return CreateTopicsResponse(topics=[_refusal(topic.name, KafkaError(code)) for topic in request.topics])
