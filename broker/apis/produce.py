"""Produce (0): append record batches to partitions."""

from collections.abc import Mapping

import trio

from broker.errors import CloseConnection, error_code_of
from broker.metadata.topic_names import INTERNAL_TOPICS
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.partitions.append import belongs_aside
from broker.partitions.fetch_sessions import PartitionKey
from broker.partitions.leader import Leader
from broker.partitions.leader_hints import leader_hint
from broker.partitions.read import UNKNOWN
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from protocol.records.batch import MAGIC, RECORD_BATCH_OVERHEAD, Buffer, RecordBatch, TimestampType
from protocol.records.errors import RecordsTooLarge
from protocol.records.validation import MalformedBatch, RefusedBatch, read_produced
from storage.errors import StorageError
from storage.partition_log import Appended
from storage.transaction_verification import VOUCHED, Verification

ZSTD_VERSION = 7  # KIP-110
LEADER_HINT_VERSION = 10  # KIP-951
TOPIC_IDS_VERSION = 13  # KIP-516

ADMIN_CLIENT_ID = "__admin_client"
"""The client that may write into internal topics."""

NO_ACKNOWLEDGEMENT = 0
ALL_IN_SYNC = -1
ACKNOWLEDGEMENTS = (-1, 0, 1)

LOG_START_UNTOLD = frozenset(
    (
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    )
)
"""Errors of the log itself whose answers do not say where it starts."""

NO_LEADER = LeaderIdAndEpoch()
NO_RECORD_ERRORS: list[BatchIndexAndErrorMessage] = []

Batches = dict[PartitionKey, RecordBatch | RefusedBatch]
Answer = ProduceResponse | None

Verdicts = Mapping[PartitionKey, Verification | KafkaError | None]
"""What the coordinator says to transactional batches: an error, or what is handed over with the batch."""

NOTHING_VERIFIED: Verdicts = {}


def handle(request: ProduceRequest, call: Call) -> Answer | Waiting[Answer]:
    """Append what may be appended; each partition is answered for itself.

    The answer waits for batches that are checked in a thread or have to be fsynced first, and with acks=all
    for other replicas: for these alone the request's timeout counts.
    """
    try:
        batches = read_batches(request, call.version)
    except KafkaError as error:
        return refuse_all(request, error.code, error.message)
    partitions = call.services.partitions
    if partitions.missing:
        partitions.require_made(batches)
    transactional = [
        key for key, batch in batches.items() if isinstance(batch, RecordBatch) and batch.is_transactional
    ]
    if transactional:
        return append_transactional(request, call, batches, transactional)
    return append_all(request, call, batches, NOTHING_VERIFIED)


def append_transactional(
    request: ProduceRequest, call: Call, batches: Batches, transactional: list[PartitionKey]
) -> Answer | Waiting[Answer]:
    """Append when the coordinator has been asked about every transaction that would begin."""
    if request.transactional_id is None:
        return refuse_all(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    from broker.transactions.produced import SeveralProducers, verify

    try:
        verified = verify(request.transactional_id, batches, transactional, call)
    except SeveralProducers as error:
        return refuse_all(request, error.code, error.message)
    if verified.is_settled:
        return append_all(request, call, batches, verified.outcome)
    appended: Waiting[Answer] | None = None
    is_late = False

    def expire() -> None:
        nonlocal is_late
        is_late = True
        if appended is not None:
            appended.expire()

    waiting: Waiting[Answer] = Waiting(deadline_of(request), expire, exclusive=True)

    def append() -> None:
        nonlocal appended
        try:
            outcome = append_all(request, call, batches, verified.outcome)
        except CloseConnection as closing:
            waiting.fail(closing)
            return
        if not isinstance(outcome, Waiting):
            waiting.answer(outcome)
            return
        outcome.pass_on(waiting)
        appended = outcome
        if is_late:
            outcome.expire()

    verified.when_settled(append)
    return waiting


def append_all(
    request: ProduceRequest, call: Call, batches: Batches, verified: Verdicts
) -> Answer | Waiting[Answer]:
    partitions = call.services.partitions
    now_ms = call.received_ms
    acks = request.acks
    acks_all = acks == ALL_IN_SYNC
    response = ProduceResponse()
    topics: dict[str | bytes, TopicProduceResponse] = {}
    gathering: Gathering | None = None
    for key, batch in batches.items():
        reply = add_reply(response, topics, key)
        leader: Leader | None = None
        try:
            leader = partitions.leader_at(key)
            if isinstance(batch, RefusedBatch):
                if acks_all and batch.reached_log:
                    leader.check_enough_in_sync()
                raise batch
            if acks not in ACKNOWLEDGEMENTS:
                raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
            verification: Verification | None = VOUCHED
            if verified and key in verified:
                verdict = verified[key]
                if isinstance(verdict, KafkaError):
                    raise verdict
                verification = verdict
            if leader.topic in INTERNAL_TOPICS and call.client_id != ADMIN_CLIENT_ID:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
            check_aside = belongs_aside(batch, leader.policy)
            appended: Appended | None = None
            if not check_aside and not leader.has_pending:
                try:
                    appended = leader.append(batch, now_ms, verification, acks_all)
                except RecordsTooLarge:
                    check_aside = True
            if appended is None:
                if gathering is None:
                    gathering = Gathering(response, request, call)
                gathering.append(
                    key, leader, batch, reply, now_ms, check_aside=check_aside, verification=verification
                )
                continue
        except (KafkaError, StorageError) as error:
            if leader is None and error_code_of(error) not in UNKNOWN:
                error = find_fault(request, key, batch, verified, call) or error
            refuse(response, key, leader, reply, error, call)
            continue
        accept(reply, leader, appended)
        if (
            appended.last_offset >= (leader.log.high_watermark if acks_all else leader.own_end)
            and acks != NO_ACKNOWLEDGEMENT
        ):
            if gathering is None:
                gathering = Gathering(response, request, call)
            gathering.wait_acknowledged(key, leader, appended, reply)
    if gathering is not None:
        return gathering.close()
    return answer(response, request)


def find_fault(
    request: ProduceRequest,
    key: PartitionKey,
    batch: RecordBatch | RefusedBatch,
    verified: Verdicts,
    call: Call,
) -> KafkaError | None:
    """What Kafka notices before it looks who leads a partition that exists."""
    if isinstance(batch, RefusedBatch):
        return batch
    if request.acks not in ACKNOWLEDGEMENTS:
        return KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    verdict = verified.get(key)
    if isinstance(verdict, KafkaError):
        return verdict
    image, name = call.services.image, key[0]
    topic = image.topics.get(name) if isinstance(name, str) else image.topics_by_id.get(name)
    if topic is not None and topic.name in INTERNAL_TOPICS and call.client_id != ADMIN_CLIENT_ID:
        return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    return None


def answer(response: ProduceResponse, request: ProduceRequest) -> Answer:
    """What is sent when all partitions are settled; raises CloseConnection where that is the answer."""
    if request.acks != NO_ACKNOWLEDGEMENT:
        return response
    for topic in response.responses:
        for reply in topic.partition_responses:
            if reply.error_code:
                code = ErrorCode(reply.error_code).name
                raise CloseConnection(f"a batch without acknowledgement is refused with {code}")
    return None


def read_batches(request: ProduceRequest, version: int) -> Batches:
    """The batch of each partition.  Where one is named twice the last one counts.

    Raises MalformedBatch, or another ``KafkaError`` that holds for the whole request.
    """
    zstd_allowed = version >= ZSTD_VERSION
    batches: Batches = {}
    for topic in request.topic_data:
        name = topic.topic_id if version >= TOPIC_IDS_VERSION else topic.name
        for partition in topic.partition_data:
            try:
                batches[name, partition.index] = read_produced(partition.records, zstd_allowed=zstd_allowed)
            except MalformedBatch:
                raise
            except RefusedBatch as refusal:
                if request.transactional_id is None and claims_transaction(partition.records):
                    raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED) from None
                batches[name, partition.index] = refusal
    return batches


def claims_transaction(records: Buffer | None) -> bool:
    """Whether the first batch is transactional, whatever else is wrong: Kafka looks at that first."""
    if records is None or len(records) < RECORD_BATCH_OVERHEAD:
        return False
    batch = RecordBatch(records)
    return batch.magic == MAGIC and batch.is_transactional


def refuse_all(request: ProduceRequest, code: ErrorCode, message: str | None = None) -> Answer:
    """The answer if the request fails as a whole; the protocol knows no error but those of partitions."""
    if request.acks == NO_ACKNOWLEDGEMENT:
        raise CloseConnection(f"a batch without acknowledgement is refused with {code.name}")
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=partition.index, error_code=code, base_offset=-1, error_message=message
                    )
                    for partition in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def error_response(request: ProduceRequest, code: ErrorCode) -> Answer:
    """For dispatch: something unforeseen has happened."""
    return None if request.acks == NO_ACKNOWLEDGEMENT else refuse_all(request, code)


def add_reply(
    response: ProduceResponse, topics: dict[str | bytes, TopicProduceResponse], key: PartitionKey
) -> PartitionProduceResponse:
    """The place of one partition's answer, refused until it is accepted.  A topic is answered for once."""
    name, index = key
    reply = PartitionProduceResponse(
        index=index, base_offset=-1, record_errors=NO_RECORD_ERRORS, current_leader=NO_LEADER
    )
    topic = topics.get(name)
    if topic is None:
        topic = (
            TopicProduceResponse(name=name) if isinstance(name, str) else TopicProduceResponse(topic_id=name)
        )
        topics[name] = topic
        response.responses.append(topic)
    topic.partition_responses.append(reply)
    return reply


def accept(reply: PartitionProduceResponse, leader: Leader, appended: Appended) -> None:
    reply.base_offset = appended.base_offset
    reply.log_start_offset = appended.log_start
    # Kafka also names the time of a repeated batch here, whatever the topic's timestamp type.
    if appended.is_duplicate or leader.policy.timestamp_type is TimestampType.LOG_APPEND_TIME:
        reply.log_append_time_ms = appended.max_timestamp


def refuse(
    response: ProduceResponse,
    key: PartitionKey,
    leader: Leader | None,
    reply: PartitionProduceResponse,
    error: KafkaError | StorageError,
    call: Call,
) -> None:
    code = error_code_of(error)
    reply.error_code = code
    reply.base_offset = -1
    reached_log = isinstance(error, StorageError) and code not in LOG_START_UNTOLD
    if isinstance(error, KafkaError):
        reply.error_message = error.message
    if isinstance(error, RefusedBatch):
        reached_log = error.reached_log
        reply.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in error.record_errors
        ]
    if reached_log and leader is not None:
        reply.log_start_offset = leader.log.log_start
    if code == ErrorCode.NOT_LEADER_OR_FOLLOWER and call.version >= LEADER_HINT_VERSION:
        add_leader_hint(response, key, reply, call)


def add_leader_hint(
    response: ProduceResponse, key: PartitionKey, reply: PartitionProduceResponse, call: Call
) -> None:
    hint = leader_hint(call, key)
    if hint is None:
        return
    reply.current_leader = LeaderIdAndEpoch(leader_id=hint.leader_id, leader_epoch=hint.leader_epoch)
    node = hint.node
    if node is not None and all(known.node_id != node.id for known in response.node_endpoints):
        response.node_endpoints.append(
            NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
        )


def deadline_of(request: ProduceRequest) -> float:
    """Until when other replicas are waited for, in Trio's time."""
    return trio.current_time() + request.timeout_ms / 1000


class Gathering:
    """An answer that waits until its last partition is settled."""

    __slots__ = (
        "_acks_all",
        "_call",
        "_is_late",
        "_missing",
        "_request",
        "_response",
        "_uncommitted",
        "_unwritten",
        "_waiting",
    )

    def __init__(self, response: ProduceResponse, request: ProduceRequest, call: Call) -> None:
        self._response = response
        self._request = request
        self._call = call
        self._acks_all = request.acks == ALL_IN_SYNC
        self._waiting: Waiting[Answer] = Waiting(None, self._expire)
        self._missing = 1  # until the handler has gone through all partitions
        self._unwritten = 0
        self._uncommitted: dict[PartitionKey, PartitionProduceResponse] = {}
        """What waits for other replicas."""
        self._is_late = False
        """They are not waited for any longer."""

    def append(
        self,
        key: PartitionKey,
        leader: Leader,
        batch: RecordBatch,
        reply: PartitionProduceResponse,
        now_ms: int,
        *,
        check_aside: bool,
        verification: Verification | None,
    ) -> None:
        """Append when it is this batch's turn."""

        def appended(outcome: Appended | Exception) -> None:
            self._unwritten -= 1
            if isinstance(outcome, Appended):
                accept(reply, leader, outcome)
                if self._request.acks != NO_ACKNOWLEDGEMENT:
                    self.wait_acknowledged(key, leader, outcome, reply)
            elif isinstance(outcome, KafkaError | StorageError):
                refuse(self._response, key, leader, reply, outcome, self._call)
            else:
                self._waiting.fail(outcome)
            if not self._unwritten:
                self._waiting.release()
            self._settle_one()

        self._missing += 1
        self._unwritten += 1
        self._heed_deadline(leader)
        leader.append_in_turn(
            batch,
            now_ms,
            appended,
            check_aside=check_aside,
            verification=verification,
            acks_all=self._acks_all,
        )

    def wait_acknowledged(
        self, key: PartitionKey, leader: Leader, appended: Appended, reply: PartitionProduceResponse
    ) -> None:
        """Hold the answer back until the records are as safe as the producer wants them to be."""
        self._missing += 1
        end_offset = appended.last_offset + 1
        if self._acks_all and leader.replication is not None:
            self._wait_for_replicas(key, leader, end_offset, reply)
            return

        def stored(error: KafkaError | None) -> None:
            if error is not None:
                refuse(self._response, key, leader, reply, error, self._call)
            self._settle_one()

        leader.when_stored(end_offset, stored)

    def _wait_for_replicas(
        self, key: PartitionKey, leader: Leader, end_offset: int, reply: PartitionProduceResponse
    ) -> None:
        """Should they not come to have it, the answer still says where the records are in this log."""

        def committed(error: KafkaError | None) -> None:
            if self._uncommitted.pop(key, None) is None:
                return  # too late
            if error is not None:
                reply.error_code = error.code
                if (
                    error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
                    and self._call.version >= LEADER_HINT_VERSION
                ):
                    add_leader_hint(self._response, key, reply, self._call)
            self._settle_one()

        self._uncommitted[key] = reply
        self._heed_deadline(leader)
        leader.when_committed(end_offset, committed)
        if self._is_late:
            self._expire()

    def _heed_deadline(self, leader: Leader) -> None:
        if self._acks_all and leader.replication is not None and self._waiting.deadline is None:
            self._waiting.deadline = deadline_of(self._request)

    def _expire(self) -> None:
        """Wait no longer for other replicas.  What has not been written yet is answered for after that."""
        self._is_late = True
        uncommitted, self._uncommitted = self._uncommitted, {}
        for reply in uncommitted.values():
            reply.error_code = ErrorCode.REQUEST_TIMED_OUT
            self._settle_one()

    def close(self) -> Answer | Waiting[Answer]:
        """All partitions have been handed over: the answer, or the place where it will be."""
        self._waiting.exclusive = self._unwritten > 0
        self._settle_one()
        return self._waiting

    def _settle_one(self) -> None:
        self._missing -= 1
        if not self._missing:
            try:
                self._waiting.answer(answer(self._response, self._request))
            except CloseConnection as closing:
                self._waiting.fail(closing)
