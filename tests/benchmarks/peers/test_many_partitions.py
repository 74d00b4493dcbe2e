from benchmarks.peers.many_partitions import produce_errors, produce_request
from protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

HEADER_SIZE = 4 + 2 + 2 + 4 + 2 + len(b"bench")


def test_every_partition_gets_a_record() -> None:
    request = ProduceRequest.decode(produce_request("a-topic", 3)[HEADER_SIZE:], 3)
    (topic,) = request.topic_data
    assert topic.name == "a-topic"
    assert [partition.index for partition in topic.partition_data] == [0, 1, 2]
    assert all(partition.records for partition in topic.partition_data)


def test_errors_of_all_partitions_are_found() -> None:
    answer = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name="a-topic",
                partition_responses=[
                    PartitionProduceResponse(index=index, error_code=code)
                    for index, code in enumerate((0, 3, 0, 6, 3))
                ],
            )
        ]
    )
    assert produce_errors(bytes(4) + answer.encode(3), "a-topic") == {3, 6}
