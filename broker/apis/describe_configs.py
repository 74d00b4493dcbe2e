"""DescribeConfigs (32): settings of topics, brokers, groups and loggers, and where their values come from."""

from collections.abc import Sequence

from broker.apis.error_texts import fitting
from broker.config.definitions import Scope
from broker.config.layers import (
    ConfigSource,
    Entry,
    Wanted,
    describe_broker,
    describe_client_metrics,
    describe_cluster_default,
    describe_group,
    describe_topic,
)
from broker.config.value_types import read_integer
from broker.metadata import topic_names
from broker.metadata.image import ResourceType
from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

_INVALID_REQUEST = (
    "This most likely occurs because of a request being malformed by the client library or the message was "
    "sent to an incompatible broker. See the broker logs for more details."
)


_DESCRIBED = frozenset(ResourceType)


def handle(request: DescribeConfigsRequest, call: Call) -> DescribeConfigsResponse:
    """One resource of an unknown type spoils the whole request, as in Kafka."""
    if not all(resource.resource_type in _DESCRIBED for resource in request.resources):
        return error_response(request, ErrorCode.INVALID_REQUEST)
    return DescribeConfigsResponse(
        results=[
            describe(call, resource, request.include_synonyms, request.include_documentation)
            for resource in request.resources
        ]
    )


def describe(
    call: Call, resource: DescribeConfigsResource, synonyms: bool, documentation: bool
) -> DescribeConfigsResult:
    """The answer about one resource; no names, like an empty list of them, asks for all."""
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    wanted = frozenset(resource.configuration_keys) if resource.configuration_keys else None
    try:
        scope, entries = entries_of(call, resource.resource_type, resource.resource_name, wanted)
    except KafkaError as error:
        result.error_code = error.code
        result.error_message = fitting(error.message or "")
        return result
    result.configs = [shown(entry, scope, synonyms, documentation) for entry in entries]
    return result


def entries_of(call: Call, kind: int, name: str, wanted: Wanted) -> tuple[Scope | None, Sequence[Entry]]:
    """The settings of one resource, and what they are settings of; None is a logger."""
    config, image = call.services.config, call.services.image
    if kind == ResourceType.TOPIC:
        topic_names.check(name)
        if name not in image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return Scope.TOPIC, describe_topic(config, image.topic_config(name), wanted)
    if kind == ResourceType.BROKER:
        if not name:
            return Scope.BROKER, describe_cluster_default(config, wanted)
        check_is_this_broker(call, name, "or empty string, but")
        return Scope.BROKER, describe_broker(config, wanted)
    if kind == ResourceType.BROKER_LOGGER:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        check_is_this_broker(call, name, "but")
        return None, describe_loggers(call, wanted)
    if kind == ResourceType.CLIENT_METRICS:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        return Scope.CLIENT_METRICS, describe_client_metrics(
            image.config(ResourceType.CLIENT_METRICS, name), wanted
        )
    assert kind == ResourceType.GROUP
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    return Scope.GROUP, describe_group(config, image.config(ResourceType.GROUP, name), wanted)


def check_is_this_broker(call: Call, name: str, but: str) -> None:
    """Raise INVALID_REQUEST unless ``name`` is this broker's id: each knows only its own settings."""
    broker_id = read_integer(name)
    if broker_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if broker_id != call.services.node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {call.services.node_id} {but} received {name}",
        )


def describe_loggers(call: Call, wanted: Wanted) -> list[Entry]:
    """The level of each of the broker's loggers."""
    return [
        Entry(logger, level.name, False, ConfigSource.DYNAMIC_BROKER_LOGGER, False, (), 0)
        for logger, level in call.services.log.levels().items()
        if wanted is None or logger in wanted
    ]


def shown(
    entry: Entry, scope: Scope | None, synonyms: bool, documented: bool
) -> DescribeConfigsResourceResult:
    """One setting on the wire."""
    layers = entry.synonyms if synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=name, value=text, source=source) for name, text, source in layers
        ],
        config_type=entry.type_number,
        documentation=_documentation(scope, entry.name, documented),
    )


def error_response(request: DescribeConfigsRequest, code: ErrorCode) -> DescribeConfigsResponse:
    """``code`` for every resource."""
    message = _INVALID_REQUEST if code == ErrorCode.INVALID_REQUEST else None
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


def _documentation(scope: Scope | None, name: str, is_wanted: bool) -> str | None:
    if scope is None:
        return ""  # loggers have none, asked for or not
    if not is_wanted:
        return None
    from broker.config.documentation import documentation

    return documentation(scope, name)
