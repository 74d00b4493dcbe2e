"""AlterClientQuotas (49): change the limits on what clients may use."""

from protocol.primitives import BOOL, FLOAT64, INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class EntityData(Struct):
    entity_type: str = wire(STRING, "0+", default="")
    entity_name: str | None = wire(STRING, "0+", default="", nullable="0+")


class OpData(Struct):
    key: str = wire(STRING, "0+", default="")
    value: float = wire(FLOAT64, "0+", default=0.0)
    remove: bool = wire(BOOL, "0+", default=False)


class AlterClientQuotasRequestEntryData(Struct):
    entity: list[EntityData] = wire(Array(EntityData), "0+", factory=list)
    ops: list[OpData] = wire(Array(OpData), "0+", factory=list)


class AlterClientQuotasRequest(Message, api_key=49, versions="0-1", flexible="1+"):
    entries: list[AlterClientQuotasRequestEntryData] = wire(
        Array(AlterClientQuotasRequestEntryData), "0+", factory=list
    )
    validate_only: bool = wire(BOOL, "0+", default=False)


class AlterClientQuotasResponseEntryData(Struct):
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+")
    entity: list[EntityData] = wire(Array(EntityData), "0+", factory=list)


class AlterClientQuotasResponse(Message, api_key=49, versions="0-1", flexible="1+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    entries: list[AlterClientQuotasResponseEntryData] = wire(
        Array(AlterClientQuotasResponseEntryData), "0+", factory=list
    )
