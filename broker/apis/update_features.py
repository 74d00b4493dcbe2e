"""UpdateFeatures (57): raise or lower feature levels of the cluster (KIP-584)."""

from typing import Final

from broker.apis.error_texts import fitting
from broker.controller.decision import Decision
from broker.controller.features import (
    MIN_INSYNC_REPLICAS,
    FeatureUpdate,
    Quorum,
    UpgradeType,
    update_features,
)
from broker.metadata.features import KRAFT_VERSION
from broker.metadata.image import MetadataImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

FIRST_WITH_TYPES: Final = 1
"""The version since which a request says how; before it everything is an upgrade, whatever it allows."""

TIMEOUT_MS: Final = 60_000
"""Kafka has one of its own for this, and passes over the request's."""


def handle(
    request: UpdateFeaturesRequest, call: Call
) -> UpdateFeaturesResponse | Waiting[UpdateFeaturesResponse]:
    services = call.services
    updates = {
        update.feature: FeatureUpdate(
            update.max_version_level,
            update.upgrade_type if call.version >= FIRST_WITH_TYPES else UpgradeType.UPGRADE,
        )
        for update in request.feature_updates
    }
    min_isr = services.config.started_with(MIN_INSYNC_REPLICAS)

    def command(image: MetadataImage) -> Decision[None]:
        raft = services.controller.raft
        decision = update_features(
            image,
            Quorum(services.node_id, raft.kraft_version),
            updates,
            validate_only=request.validate_only,
            static_min_isr=min_isr,
        )
        kraft = updates.get(KRAFT_VERSION)
        if kraft is not None and kraft.level > raft.kraft_version and not request.validate_only:
            raft.upgrade(kraft.level)
        return decision

    def build(outcome: KafkaError | None) -> UpdateFeaturesResponse:
        if outcome is None:
            return succeeded(request)
        if outcome.code == ErrorCode.INVALID_UPDATE_VERSION:
            return failed(outcome)
        return UpdateFeaturesResponse(error_code=outcome.code, error_message=outcome.message)

    return services.controller.answer(command, build, timeout_ms=TIMEOUT_MS)


def succeeded(request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Up to version 1 each feature has a line, which can only say that all is well."""
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(feature=update.feature, error_message="NONE")
            for update in request.feature_updates
        ],
    )


def failed(error: KafkaError) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(
        error_code=error.code,
        error_message=fitting(
            f"The update failed for all features since the following feature had an error: {error.message}"
        ),
    )
