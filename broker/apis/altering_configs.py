"""What AlterConfigs and IncrementalAlterConfigs share: first the broker has its say, then the controller."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from broker.config.alterations import check_alteration
from broker.config.definitions import ConfigError, Scope, find
from broker.config.value_types import read_integer
from broker.controller.decision import Decision
from broker.controller.settings import Alteration, Change, Operation, Outcome, alter_settings
from broker.logs import LOGGERS, ROOT, Level
from broker.metadata.image import MetadataImage, ResourceType
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Response = TypeVar("Response")

_LEVELS: Mapping[str, Level] = {level.name: level for level in sorted(Level, key=lambda level: level.name)}

_TYPES = frozenset(ResourceType)


def alter_resources(
    request: AlterConfigsRequest | IncrementalAlterConfigsRequest,
    call: Call,
    alterations: Sequence[Alteration],
    build: Callable[[Sequence[Outcome]], Response],
) -> Response | Waiting[Response]:
    """Alter each resource by itself; ``build`` makes the answer of what became of them, in their order.

    Loggers are this broker's own business; everything else is decided, and remembered, by the controller.
    ``alterations`` are what ``request`` says of its resources.
    """
    config, validate_only = call.services.config, request.validate_only
    settled: dict[int, Outcome] = {}
    resources = [(alteration.resource_type, alteration.resource_name) for alteration in alterations]
    for index, alteration in enumerate(alterations):
        try:
            if resources.count(resources[index]) > 1:
                on_controller = call.listener.is_controller
                raise _invalid(
                    "Duplicate resource." if on_controller else "Each resource must appear at most once."
                )
            if _is_done_here(call, alteration, validate_only=validate_only):
                settled[index] = None
        except KafkaError as error:
            settled[index] = error
    left = [index for index in range(len(alterations)) if index not in settled]
    if not left:
        return build([settled[index] for index in range(len(alterations))])

    seen_by_broker = not call.listener.is_controller or call.connection.is_forwarded

    def command(image: MetadataImage) -> Decision[Sequence[Outcome]]:
        undecided = [alterations[index] for index in left]
        return alter_settings(
            image, undecided, config, validate_only=validate_only, seen_by_broker=seen_by_broker
        )

    def answer(outcome: Sequence[Outcome] | KafkaError) -> Response:
        decided = [outcome] * len(left) if isinstance(outcome, KafkaError) else outcome
        outcomes = settled | dict(zip(left, decided, strict=True))
        return build([outcomes[index] for index in range(len(alterations))])

    if not call.listener.is_controller and not call.services.channel.is_local:
        return _pass_on(request, left, call, answer)
    return call.services.controller.answer(command, answer, timeout_ms=config.get("request.timeout.ms"))


def _pass_on(
    request: AlterConfigsRequest | IncrementalAlterConfigsRequest,
    left: Sequence[int],
    call: Call,
    build: Callable[[Sequence[Outcome] | KafkaError], Response],
) -> Waiting[Response]:
    """Let another node's controller decide about what is left of the request."""
    resources: list[Any] = [request.resources[index] for index in left]
    waiting: Waiting[Response] = Waiting()

    def done(answer: AlterConfigsResponse | IncrementalAlterConfigsResponse | KafkaError) -> None:
        if isinstance(answer, KafkaError):
            waiting.answer_with(lambda: build(answer))
            return
        results = {(result.resource_type, result.resource_name): result for result in answer.responses}
        outcomes: list[Outcome] = []
        for resource in resources:
            result = results.get((resource.resource_type, resource.resource_name))
            if result is None:
                outcomes.append(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
            else:
                code = ErrorCode(result.error_code)
                outcomes.append(None if code is ErrorCode.NONE else KafkaError(code, result.error_message))
        waiting.answer_with(lambda: build(outcomes))

    remaining = type(request)(resources=resources, validate_only=request.validate_only)
    call.services.channel.submit(remaining, done, client=call)
    return waiting


def _is_done_here(call: Call, alteration: Alteration, *, validate_only: bool) -> bool:
    """Whether the controller need not be asked any more; raises what the broker has against it."""
    if not call.listener.is_controller:
        _check_changes(alteration.changes)
    kind = alteration.resource_type
    if kind == ResourceType.BROKER_LOGGER and not alteration.is_complete:
        _check_node_id(call, alteration.resource_name, "node id. Expected {}, but received {}")
        _check_loggers(alteration.changes)
        if not validate_only:
            for change in alteration.changes:
                is_set = change.operation == Operation.SET
                call.services.log.set_level(change.name, _LEVELS[change.value or ""] if is_set else None)
        return True
    if call.listener.is_controller:
        if kind not in _TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unknown resource type {kind}.")
        if kind == ResourceType.BROKER_LOGGER:
            raise _invalid("Unexpected resource type BROKER_LOGGER.")
        return False  # what a broker has to say of its own settings, it has said
    if kind == ResourceType.BROKER:
        if alteration.resource_name:
            _check_node_id(call, alteration.resource_name, "broker id, expected {}, but received {}")
        _check_broker(call, alteration)
    elif kind not in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLIENT_METRICS):
        raise _invalid(f"Unknown resource type {kind}")
    return False


def _check_changes(changes: Sequence[Change]) -> None:
    """Only brokers mind: a controller removes what has no value, and heeds the last of a name."""
    names = [change.name for change in changes]
    if len(set(names)) != len(names):
        raise _invalid("Error due to duplicate config keys")
    missing = [
        change.name for change in changes if change.value is None and change.operation != Operation.DELETE
    ]
    if missing:
        raise _invalid(f"Null value not supported for : {', '.join(missing)}")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _check_node_id(call: Call, name: str, unexpected: str) -> None:
    node_id = read_integer(name)
    if node_id is None:
        raise _invalid(f"Node id must be an integer, but it is: {name}")
    if node_id != call.services.node_id:
        raise _invalid("Unexpected " + unexpected.format(call.services.node_id, name))


def _check_loggers(changes: Sequence[Change]) -> None:
    for change in changes:
        if change.operation == Operation.SET:
            _check_logger(change.name)
            if change.value not in _LEVELS:
                raise KafkaError(
                    ErrorCode.INVALID_CONFIG,
                    f"Cannot set the log level of {change.name} to {change.value} as it is not a supported "
                    f"log level. Valid log levels are {', '.join(_LEVELS)}",
                )
        elif change.operation == Operation.DELETE:
            _check_logger(change.name)
            if change.name == ROOT:
                raise _invalid(f"Removing the log level of the {ROOT} logger is not allowed")
        elif change.operation in (Operation.APPEND, Operation.SUBTRACT):
            word = Operation(change.operation).name
            raise _invalid(f"{word} operation is not allowed for the BROKER_LOGGER resource")
        else:
            raise _invalid(
                f"Unknown operation type {change.operation} is not allowed for the BROKER_LOGGER resource"
            )


def _check_logger(name: str) -> None:
    if name not in LOGGERS:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")


def _check_broker(call: Call, alteration: Alteration) -> None:
    """A broker's settings are checked by the broker that shall live with them."""
    config, name = call.services.config, alteration.resource_name
    texts = {} if alteration.is_complete else dict(config.dynamic_broker if name else config.dynamic_default)
    for change in alteration.changes:
        _apply(texts, change)
    try:
        check_alteration(config, texts, for_this_broker=bool(name))
    except ConfigError as error:
        raise _invalid(error.wire_message) from error


def _apply(texts: dict[str, str], change: Change) -> None:
    if change.operation == Operation.DELETE:
        texts.pop(change.name, None)
    elif change.operation == Operation.SET:
        texts[change.name] = change.value or ""
    elif change.operation not in (Operation.APPEND, Operation.SUBTRACT):
        raise _invalid(f"Unknown operations type {change.operation}")
    else:
        known = find(Scope.BROKER, change.name)
        if known is None or known.is_dynamic_only:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {change.name}")
        if not known.is_list:
            word = Operation(change.operation).name.lower()
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Config value {word} is not allowed for config key: {change.name}",
            )
        old = texts.get(change.name, known.default_text) or ""
        items = old.split(",") if old else []
        given = (change.value or "").split(",")
        if change.operation == Operation.APPEND:
            items += [item for item in given if item not in items]
        else:
            items = [item for item in items if item not in given]
        texts[change.name] = ",".join(items)
