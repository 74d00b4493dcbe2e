"""UpdateFeatures (57): finalize feature levels of the cluster."""

from protocol.primitives import BOOL, INT8, INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class FeatureUpdateKey(Struct):
    feature: str = wire(STRING, "0+", default="")
    max_version_level: int = wire(INT16, "0+", default=0)
    allow_downgrade: bool = wire(BOOL, "0", default=False)
    upgrade_type: int = wire(INT8, "1+", default=1)


class UpdateFeaturesRequest(Message, api_key=57, versions="0-2", flexible="0+"):
    timeout_ms: int = wire(INT32, "0+", default=60000)
    feature_updates: list[FeatureUpdateKey] = wire(Array(FeatureUpdateKey), "0+", factory=list)
    validate_only: bool = wire(BOOL, "1+", default=False)


class UpdatableFeatureResult(Struct):
    feature: str = wire(STRING, "0+", default="")
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+")


class UpdateFeaturesResponse(Message, api_key=57, versions="0-2", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+")
    results: list[UpdatableFeatureResult] = wire(
        Array(UpdatableFeatureResult), "0-1", factory=list, ignorable=True
    )
