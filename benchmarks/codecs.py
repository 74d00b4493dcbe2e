"""What the compiled codecs cost by themselves."""

import timeit

from compat.raw_client import one_record_batch
from protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

CALLS = 2000
REPEATS = 40


def codecs_round() -> dict[str, float]:
    """Microseconds to read a Produce, and to write the answer to a Fetch, of one partition."""
    request = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name="a-topic",
                partition_data=[PartitionProduceData(index=0, records=one_record_batch(b"x" * 1000))],
            )
        ],
    )
    data = request.encode(9)
    records = one_record_batch(b"x" * 1000)
    response = FetchResponse(
        responses=[FetchableTopicResponse(topic_id=bytes(16), partitions=[PartitionData(records=records)])]
    )
    return {
        "decode Produce v9, one partition": _microseconds(lambda: ProduceRequest.decode(data, 9)),
        "encode Fetch response v13, one partition": _microseconds(lambda: response.encode(13)),
    }


def _microseconds(work: "timeit._Stmt") -> float:
    return min(timeit.repeat(work, number=CALLS, repeat=REPEATS)) / CALLS * 1e6
