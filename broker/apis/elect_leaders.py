"""ElectLeaders (43): let preferred replicas lead, or any at all (KIP-183, KIP-460)."""

from collections.abc import Callable, Iterable
from typing import Final

from broker.controller.decision import Decision, check_count
from broker.controller.elections import Election
from broker.controller.reassignments import elect_leader
from broker.controller.start import topic_rules
from broker.metadata.features import PARTITION_RECORD_VERSION
from broker.metadata.image import MetadataImage
from broker.metadata.records import VersionedRecord
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

ELECTIONS: Final = {0: Election.PREFERRED, 1: Election.UNCLEAN}
"""By their numbers on the wire.  Version 0 knows preferred leaders alone."""

Wanted = list[tuple[str, list[int]]]
"""Topics and their partitions."""


def handle(request: ElectLeadersRequest, call: Call) -> ElectLeadersResponse | Waiting[ElectLeadersResponse]:
    services = call.services
    named = named_in(request)
    if request.topic_partitions is not None and not named:
        return ElectLeadersResponse()

    def command(image: MetadataImage) -> Decision[list[ReplicaElectionResult]]:
        election = ELECTIONS.get(request.election_type)
        if election is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
        rules = topic_rules(services, image)
        records: list[VersionedRecord] = []

        def elect(topic: str, index: int) -> PartitionResult:
            try:
                record = elect_leader(image, topic, index, election, rules)
            except KafkaError as error:
                return failed(index, error)
            records.append((record, PARTITION_RECORD_VERSION))
            return PartitionResult(partition_id=index, error_message=None)

        asked = named
        if request.topic_partitions is None:
            asked = [(topic.name, list(range(len(topic.partitions)))) for topic in image.topics.values()]
        results = results_of(asked, elect)
        check_count(records)
        if request.topic_partitions is None:
            # Of all partitions those are told of in which something happened, or could not.
            for result in results:
                result.partition_result = [
                    partition
                    for partition in result.partition_result
                    if partition.error_code != ErrorCode.ELECTION_NOT_NEEDED
                ]
        return Decision(records, results)

    def build(outcome: list[ReplicaElectionResult] | KafkaError) -> ElectLeadersResponse:
        if not isinstance(outcome, KafkaError):
            return ElectLeadersResponse(replica_election_results=outcome)
        response = ElectLeadersResponse(
            replica_election_results=results_of(named, lambda _, index: failed(index, outcome))
        )
        if call.version > 0:
            response.error_code = outcome.code
        return response

    return services.controller.answer(command, build, timeout_ms=request.timeout_ms)


def named_in(request: ElectLeadersRequest) -> Wanted:
    return [(named.topic, named.partitions) for named in request.topic_partitions or ()]


def results_of(
    topics: Iterable[tuple[str, list[int]]], result: Callable[[str, int], PartitionResult]
) -> list[ReplicaElectionResult]:
    return [
        ReplicaElectionResult(topic=topic, partition_result=[result(topic, index) for index in partitions])
        for topic, partitions in topics
    ]


def failed(index: int, error: KafkaError) -> PartitionResult:
    return PartitionResult(partition_id=index, error_code=error.code, error_message=error.message)


def error_response(request: ElectLeadersRequest, code: ErrorCode) -> ElectLeadersResponse:
    """The code stands beside every partition that was named."""
    return ElectLeadersResponse(
        replica_election_results=results_of(
            named_in(request), lambda _, index: failed(index, KafkaError(code))
        )
    )
