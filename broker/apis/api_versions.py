"""ApiVersions (18): which APIs and features the broker serves, in which versions."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from broker.apis.table import Api, served
from broker.metadata.features import SUPPORTED_FEATURES
from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")

NO_NODE: Final = -1


def handle(request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:
    fault = find_fault(request, call)
    if fault is not None:
        return ApiVersionsResponse(error_code=fault)
    if call.version >= 3:  # KIP-511
        call.connection.client_software_name = request.client_software_name
        call.connection.client_software_version = request.client_software_version
    services = call.services
    apis: Iterable[Api] = served(
        on_controller=call.listener.is_controller,
        unstable_versions=services.config.get("unstable.api.versions.enable"),
    )
    if not call.listener.is_controller and not services.channel.is_local:
        apis = as_forwarded(apis, services.channel.versions)
    # Version 3 clients take a lowest level of 0 for a mistake (KIP-1022).
    lowest_announced = 0 if call.version >= 4 else 1
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=api.key, min_version=api.announced_from, max_version=api.last)
            for api in apis
            if api.is_announced
        ],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
            if low >= lowest_announced
        ],
        finalized_features_epoch=services.image.offset,
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in services.metadata.finalized_features.items()
        ],
    )


def as_forwarded(apis: Iterable[Api], versions: Mapping[int, tuple[int, int]] | None) -> Iterator[Api]:
    """What a broker can offer whose controller is another node: of what it passes on, what both know.

    ``versions`` are the controller's; None while it is not known.
    """
    for api in apis:
        if not api.is_forwardable or versions is None:
            yield api
            continue
        low, high = versions.get(api.key, (0, -1))
        low, high = max(low, api.announced_from), min(high, api.last)
        if low <= high:
            yield api._replace(announced_from=low, last=high)


def find_fault(request: ApiVersionsRequest, call: Call) -> ErrorCode | None:
    """Why a client is refused: it does not say who it is, or it has come to the wrong broker (KIP-1242)."""
    if call.version >= 3:
        names = (request.client_software_name, request.client_software_version)
        if not all(_SOFTWARE.fullmatch(name) for name in names):
            return ErrorCode.INVALID_REQUEST
    if call.version >= 5:
        cluster_id, node_id = request.cluster_id, request.node_id
        if (cluster_id is None) != (node_id == NO_NODE):
            return ErrorCode.INVALID_REQUEST
        if call.listener.is_controller:
            return None  # only brokers mind whom their clients expect
        if cluster_id is not None and (cluster_id, node_id) != (
            call.services.cluster_id,
            call.services.node_id,
        ):
            return ErrorCode.REBOOTSTRAP_REQUIRED
    return None
