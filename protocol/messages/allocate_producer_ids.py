"""AllocateProducerIds (67): a broker gets a block of producer ids from the controller."""

from protocol.primitives import INT16, INT32, INT64
from protocol.schema import Message, wire


class AllocateProducerIdsRequest(Message, api_key=67, versions="0", flexible="0+"):
    broker_id: int = wire(INT32, "0+", default=0)
    broker_epoch: int = wire(INT64, "0+", default=-1)


class AllocateProducerIdsResponse(Message, api_key=67, versions="0", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    producer_id_start: int = wire(INT64, "0+", default=0)
    producer_id_len: int = wire(INT32, "0+", default=0)
