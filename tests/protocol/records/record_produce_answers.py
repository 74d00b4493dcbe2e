"""Ask a running Apache Kafka what it answers to the produce cases, and keep that as golden data.

    python -m tests.protocol.records.record_produce_answers HOST:PORT

It writes ``produce_answers.jsonl``, ``payload_flips.json`` and ``stored_batches.json`` anew, in
``tests/golden/records``.  Topics are created under a prefix of their own and stay.
"""

import json
import secrets
import sys
from pathlib import Path

from protocol.error_codes import ErrorCode
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.records.compression import Compression, compress
from tests.protocol.records.produce_cases import (
    FIFTY,
    FLIPPED_BIT,
    TOPICS,
    ProduceCase,
    produce_cases,
    section_of,
    stored_cases,
    with_payload,
)
from tests.support.raw_client import RawClient

GOLDEN = Path(__file__).parents[2] / "golden" / "records"

PRODUCE_VERSION = 9
CREATE_TOPICS_VERSION = 7
FETCH_VERSION = 12
NOT_READY_YET = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def main(address: str) -> None:
    host, _, port = address.rpartition(":")
    prefix = f"cases-{secrets.token_hex(4)}-"
    with RawClient((host, int(port))) as client:
        _create_topics(client, prefix)
        with (GOLDEN / "produce_answers.jsonl").open("w") as answers:
            for case in produce_cases():
                answers.write(json.dumps(_ask(client, prefix, case)) + "\n")
        flips = [_ask_about_flips(client, prefix, compression) for compression in list(Compression)[1:]]
        (GOLDEN / "payload_flips.json").write_text(json.dumps(flips, indent=1) + "\n")
        stored = [_ask_what_is_stored(client, prefix, case) for case in stored_cases()]
        (GOLDEN / "stored_batches.json").write_text(json.dumps(stored, indent=1) + "\n")


def _create_topics(client: RawClient, prefix: str) -> None:
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=prefix + name,
                num_partitions=1,
                replication_factor=1,
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in topic.configs.items()],
            )
            for name, topic in TOPICS.items()
        ],
        timeout_ms=10_000,
    )
    response = client.ask(request, CreateTopicsResponse, CREATE_TOPICS_VERSION)
    refused = [topic for topic in response.topics if topic.error_code != ErrorCode.NONE]
    if refused:
        raise SystemExit(f"topics are not created: {refused}")


def _ask(client: RawClient, prefix: str, case: ProduceCase) -> dict[str, object]:
    answer = _produce(client, prefix, case)
    return {
        "name": case.name,
        "code": answer.error_code,
        "reached_log": answer.log_start_offset != -1,
        "message": answer.error_message and answer.error_message.replace(prefix, ""),
        "record_errors": [
            [error.batch_index, (error.batch_index_error_message or "").replace(prefix, "")]
            for error in answer.record_errors
        ],
    }


def _produce(client: RawClient, prefix: str, case: ProduceCase) -> PartitionProduceResponse:
    partition = PartitionProduceData(index=0, records=case.records)
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=prefix + case.topic, partition_data=[partition])],
    )
    for _ in range(1000):
        response = client.ask(request, ProduceResponse, PRODUCE_VERSION)
        answer = response.responses[0].partition_responses[0]
        if answer.error_code not in NOT_READY_YET:
            return answer
    raise SystemExit(f"the topic of {case.name!r} does not get ready: {answer}")


def _ask_what_is_stored(client: RawClient, prefix: str, case: ProduceCase) -> dict[str, object]:
    answer = _produce(client, prefix, case)
    if answer.error_code != ErrorCode.NONE:
        raise SystemExit(f"{case.name!r} is refused: {answer}")
    partition = FetchPartition(partition=0, fetch_offset=answer.base_offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0, topics=[FetchTopic(topic=prefix + case.topic, partitions=[partition])]
    )
    records = client.ask(request, FetchResponse, FETCH_VERSION).responses[0].partitions[0].records
    return {"name": case.name, "sent": (case.records or b"").hex(), "stored": bytes(records or b"").hex()}


def _ask_about_flips(client: RawClient, prefix: str, compression: Compression) -> dict[str, object]:
    """The error codes for one payload with bit 6 of each of its bytes flipped in turn."""
    payload = compress(compression, section_of(FIFTY))
    codes = []
    for position in range(len(payload)):
        flipped = bytearray(payload)
        flipped[position] ^= FLIPPED_BIT
        records = with_payload(bytes(flipped), len(FIFTY), compression)
        codes.append(_ask(client, prefix, ProduceCase("", "plain", records))["code"])
    return {"codec": compression.name, "payload": payload.hex(), "codes": " ".join(map(str, codes))}


if __name__ == "__main__":
    main(sys.argv[1])
