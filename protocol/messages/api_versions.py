"""ApiVersions (18): which APIs and features the broker serves, in which versions."""

from protocol.primitives import BOOL, INT16, INT32, INT64, STRING, Array
from protocol.schema import Message, Struct, wire


class ApiVersionsRequest(Message, api_key=18, versions="0-5", flexible="3+"):
    client_software_name: str = wire(STRING, "3+", default="", ignorable=True)
    client_software_version: str = wire(STRING, "3+", default="", ignorable=True)
    cluster_id: str | None = wire(STRING, "5+", default=None, nullable="5+", ignorable=True)
    node_id: int = wire(INT32, "5+", default=-1, ignorable=True)


class ApiVersion(Struct):
    api_key: int = wire(INT16, "0+", default=0)
    min_version: int = wire(INT16, "0+", default=0)
    max_version: int = wire(INT16, "0+", default=0)


class SupportedFeatureKey(Struct):
    name: str = wire(STRING, "3+", default="")
    min_version: int = wire(INT16, "3+", default=0)
    max_version: int = wire(INT16, "3+", default=0)


class FinalizedFeatureKey(Struct):
    name: str = wire(STRING, "3+", default="")
    max_version_level: int = wire(INT16, "3+", default=0)
    min_version_level: int = wire(INT16, "3+", default=0)


class ApiVersionsResponse(Message, api_key=18, versions="0-5", flexible="3+"):
    error_code: int = wire(INT16, "0+", default=0)
    api_keys: list[ApiVersion] = wire(Array(ApiVersion), "0+", factory=list)
    throttle_time_ms: int = wire(INT32, "1+", default=0, ignorable=True)
    supported_features: list[SupportedFeatureKey] = wire(
        Array(SupportedFeatureKey), "3+", factory=list, tag=0, tagged="3+", ignorable=True
    )
    finalized_features_epoch: int = wire(INT64, "3+", default=-1, tag=1, tagged="3+", ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = wire(
        Array(FinalizedFeatureKey), "3+", factory=list, tag=2, tagged="3+", ignorable=True
    )
    zk_migration_ready: bool = wire(BOOL, "3+", default=False, tag=3, tagged="3+", ignorable=True)
