"""DescribeClientQuotas (48): limits on what clients may use."""

from protocol.primitives import BOOL, FLOAT64, INT8, INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class ComponentData(Struct):
    entity_type: str = wire(STRING, "0+", default="")
    match_type: int = wire(INT8, "0+", default=0)
    match: str | None = wire(STRING, "0+", default="", nullable="0+")


class DescribeClientQuotasRequest(Message, api_key=48, versions="0-1", flexible="1+"):
    components: list[ComponentData] = wire(Array(ComponentData), "0+", factory=list)
    strict: bool = wire(BOOL, "0+", default=False)


class EntityData(Struct):
    entity_type: str = wire(STRING, "0+", default="")
    entity_name: str | None = wire(STRING, "0+", default="", nullable="0+")


class ValueData(Struct):
    key: str = wire(STRING, "0+", default="")
    value: float = wire(FLOAT64, "0+", default=0.0)


class EntryData(Struct):
    entity: list[EntityData] = wire(Array(EntityData), "0+", factory=list)
    values: list[ValueData] = wire(Array(ValueData), "0+", factory=list)


class DescribeClientQuotasResponse(Message, api_key=48, versions="0-1", flexible="1+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+")
    entries: list[EntryData] | None = wire(Array(EntryData), "0+", factory=list, nullable="0+")
