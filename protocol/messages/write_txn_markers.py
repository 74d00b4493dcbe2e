"""WriteTxnMarkers (27): tell partition leaders how a transaction ended."""

from protocol.primitives import BOOL, INT8, INT16, INT32, INT64, STRING, Array
from protocol.schema import Message, Struct, wire


class WritableTxnMarkerTopic(Struct):
    name: str = wire(STRING, "0+", default="")
    partition_indexes: list[int] = wire(Array(INT32), "0+", factory=list)


class WritableTxnMarker(Struct):
    producer_id: int = wire(INT64, "0+", default=0)
    producer_epoch: int = wire(INT16, "0+", default=0)
    transaction_result: bool = wire(BOOL, "0+", default=False)
    topics: list[WritableTxnMarkerTopic] = wire(Array(WritableTxnMarkerTopic), "0+", factory=list)
    coordinator_epoch: int = wire(INT32, "0+", default=0)
    transaction_version: int = wire(INT8, "2+", default=0, ignorable=True)


class WriteTxnMarkersRequest(Message, api_key=27, versions="1-2", flexible="1+"):
    markers: list[WritableTxnMarker] = wire(Array(WritableTxnMarker), "0+", factory=list)


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)


class WritableTxnMarkerTopicResult(Struct):
    name: str = wire(STRING, "0+", default="")
    partitions: list[WritableTxnMarkerPartitionResult] = wire(
        Array(WritableTxnMarkerPartitionResult), "0+", factory=list
    )


class WritableTxnMarkerResult(Struct):
    producer_id: int = wire(INT64, "0+", default=0)
    topics: list[WritableTxnMarkerTopicResult] = wire(Array(WritableTxnMarkerTopicResult), "0+", factory=list)


class WriteTxnMarkersResponse(Message, api_key=27, versions="1-2", flexible="1+"):
    markers: list[WritableTxnMarkerResult] = wire(Array(WritableTxnMarkerResult), "0+", factory=list)
