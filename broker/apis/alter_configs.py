"""AlterConfigs (33): replace all settings of a resource; what is not named loses its value."""

from collections.abc import Sequence

from broker.apis.altering_configs import alter_resources
from broker.apis.error_texts import fitting
from broker.controller.settings import Alteration, Change, Operation, Outcome
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def handle(request: AlterConfigsRequest, call: Call) -> AlterConfigsResponse | Waiting[AlterConfigsResponse]:
    alterations = [
        Alteration(
            resource.resource_type,
            resource.resource_name,
            [Change(config.name, Operation.SET, config.value) for config in resource.configs],
            is_complete=True,
        )
        for resource in request.resources
    ]

    def build(outcomes: Sequence[Outcome]) -> AlterConfigsResponse:
        return AlterConfigsResponse(
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
