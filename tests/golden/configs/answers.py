"""Requests and answers about settings in a short form that can be read and compared."""

from typing import Any

from protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from protocol.schema import Message

ANSWERS: dict[type[Message], tuple[type[Message], int]] = {
    AlterConfigsRequest: (AlterConfigsResponse, 2),
    DescribeConfigsRequest: (DescribeConfigsResponse, 4),
    IncrementalAlterConfigsRequest: (IncrementalAlterConfigsResponse, 1),
    ListConfigResourcesRequest: (ListConfigResourcesResponse, 1),
}
"""The answer to each request, and the version in which they are asked."""


def brief_request(request: Message) -> Any:
    """What is asked."""
    match request:
        case IncrementalAlterConfigsRequest():
            return [
                "change" + (" validate only" if request.validate_only else ""),
                *[
                    [
                        r.resource_type,
                        r.resource_name,
                        [[c.name, c.config_operation, c.value] for c in r.configs],
                    ]
                    for r in request.resources
                ],
            ]
        case AlterConfigsRequest():
            return [
                "replace" + (" validate only" if request.validate_only else ""),
                *[
                    [r.resource_type, r.resource_name, [[c.name, c.value] for c in r.configs]]
                    for r in request.resources
                ],
            ]
        case DescribeConfigsRequest():
            return [
                "describe",
                *[[r.resource_type, r.resource_name, r.configuration_keys] for r in request.resources],
            ]
        case ListConfigResourcesRequest():
            return ["list", *request.resource_types]
    raise TypeError(type(request))


def brief_answer(answer: Message) -> Any:
    """What is answered; settings in the order of their names."""
    match answer:
        case IncrementalAlterConfigsResponse() | AlterConfigsResponse():
            return [[r.error_code, r.error_message] for r in answer.responses]
        case DescribeConfigsResponse():
            return [
                [
                    r.error_code,
                    r.error_message,
                    sorted(
                        [
                            c.name,
                            c.value,
                            c.config_type,
                            c.config_source,
                            ("read-only " if c.read_only else "") + ("sensitive" if c.is_sensitive else ""),
                            [[s.name, s.value, s.source] for s in c.synonyms],
                        ]
                        for c in r.configs
                    ),
                ]
                for r in answer.results
            ]
        case ListConfigResourcesResponse():
            return [answer.error_code, *[[r.resource_type, r.resource_name] for r in answer.config_resources]]
    raise TypeError(type(answer))
