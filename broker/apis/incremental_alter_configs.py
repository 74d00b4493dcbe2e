"""IncrementalAlterConfigs (44): change single settings of a resource (KIP-339)."""

from collections.abc import Sequence

from broker.apis.altering_configs import alter_resources
from broker.apis.error_texts import fitting
from broker.controller.settings import Alteration, Change, Outcome
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def handle(
    request: IncrementalAlterConfigsRequest, call: Call
) -> IncrementalAlterConfigsResponse | Waiting[IncrementalAlterConfigsResponse]:
    alterations = [
        Alteration(
            resource.resource_type,
            resource.resource_name,
            [Change(config.name, config.config_operation, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]

    def build(outcomes: Sequence[Outcome]) -> IncrementalAlterConfigsResponse:
        return IncrementalAlterConfigsResponse(
            responses=[
                answer(resource, outcome)
                for resource, outcome in zip(request.resources, outcomes, strict=True)
            ]
        )

    return alter_resources(request, call, alterations, build)


def answer(resource: AlterConfigsResource, outcome: Outcome) -> AlterConfigsResourceResponse:
    """What became of one resource."""
    return AlterConfigsResourceResponse(
        error_code=0 if outcome is None else outcome.code,
        error_message=None if outcome is None else fitting(outcome.message),
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
