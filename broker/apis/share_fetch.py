"""ShareFetch (78): members of a share group acquire records, and acknowledge earlier ones (KIP-932)."""

from collections.abc import Callable, Mapping

import trio

from broker.coordination.tickets import Ticket
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.partitions.leader_hints import leader_hint
from broker.partitions.read import IsolationLevel
from broker.quotas.sizes import fetched_bytes
from broker.share.acknowledging import begin_acknowledging, check_enabled, check_member
from broker.share.acquiring import AcquireMode
from broker.share.fetching import Fetched, Results, ShareFetching, Wanted
from broker.share.group_settings import group_setting
from broker.share.service import Acknowledged
from broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, SessionKey, ShareSession, TopicPartition
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

RENEW_VERSION = 2  # KIP-1222

Tickets = Mapping[TopicPartition, Ticket[Acknowledged]]


def handle(request: ShareFetchRequest, call: Call) -> ShareFetchResponse | Waiting[ShareFetchResponse]:
    """Acknowledge, look for records, and wait for both."""
    check_enabled(call)
    key = check_member(request.group_id, request.member_id)
    check_renewal(request, call)
    partitions = call.services.partitions
    if partitions.missing:
        partitions.require_made(
            (topic.topic_id, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
        )
    topic_ids = call.services.image.topics_by_id
    asked = {
        TopicPartition(topic.topic_id, partition.partition_index): topic.topic_id in topic_ids
        for topic in request.topics
        for partition in topic.partitions
    }
    acknowledges = any(
        partition.acknowledgement_batches for topic in request.topics for partition in topic.partitions
    )
    try:
        session = session_of(request, call, key, asked, acknowledges=acknowledges)
    except KafkaError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            return refuse_later(request, error.code)
        raise
    tickets: Tickets = {}
    if acknowledges:
        tickets = begin_acknowledging(
            call,
            key,
            request.topics,
            may_renew=call.version >= RENEW_VERSION,
            is_renewal=request.is_renew_ack,
        )
    return Fetch(request, call, key, session, tickets).answer()


def check_renewal(request: ShareFetchRequest, call: Call) -> None:
    """Who renews locks must not fetch as well: that could take longer than the locks last."""
    fetches = request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms
    if call.version >= RENEW_VERSION and request.is_renew_ack and fetches:
        raise KafkaError(ErrorCode.INVALID_REQUEST)


def session_of(
    request: ShareFetchRequest,
    call: Call,
    key: SessionKey,
    asked: Mapping[TopicPartition, bool],
    *,
    acknowledges: bool,
) -> ShareSession:
    """The session of the request: a new one, the one that it goes on with, or the one that it closes."""
    service = call.services.share.service
    sessions = service.sessions
    epoch = request.share_session_epoch
    if epoch == INITIAL_EPOCH:
        if acknowledges:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        session = sessions.open(key, asked, call.connection.number)
        service.watch_connection(call.connection)
        return session
    session = sessions.find(key, epoch)
    if epoch != FINAL_EPOCH:
        forgotten = [
            TopicPartition(topic.topic_id, partition)
            for topic in request.forgotten_topics_data
            for partition in topic.partitions
        ]
        session.update(asked, forgotten)
        sessions.advance(session)
    return session


def refuse_later(request: ShareFetchRequest, code: ErrorCode) -> Waiting[ShareFetchResponse]:
    """A client that cannot be served would ask again at once."""

    def refuse() -> None:
        waiting.answer(error_response(request, code))

    waiting: Waiting[ShareFetchResponse] = Waiting(
        trio.current_time() + max(request.max_wait_ms, 0) / 1000, refuse, droppable=True
    )
    return waiting


class Fetch:
    """One accepted request on its way to its answer."""

    def __init__(
        self,
        request: ShareFetchRequest,
        call: Call,
        key: SessionKey,
        session: ShareSession,
        tickets: Tickets,
    ) -> None:
        self._request = request
        self._call = call
        self._key = key
        self._session = session
        self._tickets = tickets
        self._results: Results | None = None
        self._refused: dict[TopicPartition, Fetched] = {}
        self._waiting: Waiting[ShareFetchResponse] | None = None

    def answer(self) -> ShareFetchResponse | Waiting[ShareFetchResponse]:
        fetching = self._begin_fetching()
        for ticket in self._tickets.values():
            if not ticket.is_settled:
                ticket.when_settled(self._settle)
        if self._is_complete:
            return self._respond()
        if fetching is None:
            self._waiting = Waiting(droppable=True)
            return self._waiting
        deadline = trio.current_time() + max(self._request.max_wait_ms, 0) / 1000
        self._waiting = Waiting(deadline, fetching.expire, droppable=True)
        self._waiting.on_abandoned(fetching.abandon)
        return self._waiting

    def _begin_fetching(self) -> ShareFetching | None:
        """Look for records; what is returned still waits for them."""
        request, services = self._request, self._call.services
        is_last = request.share_session_epoch == FINAL_EPOCH
        if is_last or (self._call.version >= RENEW_VERSION and request.is_renew_ack):
            self._results = {}
            return None
        max_bytes = min(request.max_bytes, services.config.get("fetch.max.bytes"))
        if self._call.meter is not None:
            max_bytes = min(max_bytes, self._call.meter.fetch_bytes_max)
        isolation = group_setting(services, self._key.group_id, "share.isolation.level")
        wanted = Wanted(
            self._key.group_id,
            self._key.member_id,
            AcquireMode(request.share_acquire_mode),
            request.max_records,
            request.batch_size,
            min(request.min_bytes, max_bytes),
            max_bytes,
            IsolationLevel.READ_COMMITTED
            if isolation == "read_committed"
            else IsolationLevel.READ_UNCOMMITTED,
        )
        existing = self._existing_partitions()
        if not existing:
            self._results = {}
            return None
        fetching = ShareFetching(services.share.service, wanted, existing, self._fetched)
        if fetching.look():
            return None
        fetching.watch()
        if request.max_wait_ms <= 0:
            fetching.expire()
        return None if self._results is not None else fetching

    def _existing_partitions(self) -> list[TopicPartition]:
        """Those of the session that there are, another one first each time; the others are refused."""
        by_id = self._call.services.image.topics_by_id
        existing = []
        for partition, place in self._session.partitions.items():
            topic = by_id.get(partition.topic_id)
            if not place.is_known:
                self._refused[partition] = Fetched(ErrorCode.UNKNOWN_TOPIC_ID)
            elif topic is None or not 0 <= partition.partition < len(topic.partitions):
                self._refused[partition] = Fetched(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                existing.append(partition)
        if not existing:
            return existing
        first = self._request.share_session_epoch % len(existing)
        return existing[first:] + existing[:first]

    def _fetched(self, results: Results) -> None:
        self._results = results
        self._settle()

    @property
    def _is_complete(self) -> bool:
        return self._results is not None and all(ticket.is_settled for ticket in self._tickets.values())

    def _settle(self) -> None:
        if self._waiting is not None and self._is_complete:
            self._waiting.answer(self._respond())

    def _respond(self) -> ShareFetchResponse:
        request, call = self._request, self._call
        response = ShareFetchResponse(
            acquisition_lock_timeout_ms=group_setting(
                call.services, self._key.group_id, "share.record.lock.duration.ms"
            )
        )
        answers: dict[TopicPartition, PartitionData] = {}
        results = {**(self._results or {}), **self._refused}
        if not self._is_throttled(results):
            for partition, fetched in results.items():
                if self._must_tell(self._session.must_tell, partition, fetched):
                    answers[partition] = self._partition_data(partition, fetched, response)
        for partition, ticket in self._tickets.items():
            data = answers.get(partition)
            if data is None:
                data = answers[partition] = PartitionData(partition_index=partition.partition, records=b"")
            data.acknowledge_error_code = ticket.outcome.error
            data.acknowledge_error_message = ticket.outcome.text
        add_topics(response, answers)
        if request.share_session_epoch == FINAL_EPOCH:
            call.services.share.service.close_session(self._key)
        return response

    def _is_throttled(self, results: Results) -> bool:
        """Whether these records are more than the client may have now.  It gets none then, as in Kafka: they
        stay acquired for as long as if it had got them."""
        meter = self._call.meter
        if meter is None:
            return False
        size_bytes = 0
        if meter.counts_fetched:
            response = ShareFetchResponse()
            answers = {
                partition: self._partition_data(partition, fetched, response)
                for partition, fetched in results.items()
                if self._must_tell(self._session.would_tell, partition, fetched)
            }
            size_bytes = fetched_bytes(add_topics(response, answers), self._call.version)
        return meter.settle_fetch(size_bytes) > 0

    def _must_tell(self, ask: Callable[..., bool], partition: TopicPartition, fetched: Fetched) -> bool:
        if self._request.share_session_epoch == INITIAL_EPOCH:
            return True
        return ask(
            partition,
            has_records=len(fetched.records) > 0,
            has_error=fetched.error is not ErrorCode.NONE,
        )

    def _partition_data(
        self, partition: TopicPartition, fetched: Fetched, response: ShareFetchResponse
    ) -> PartitionData:
        data = PartitionData(
            partition_index=partition.partition,
            error_code=fetched.error,
            records=fetched.records,
            acquired_records=[
                AcquiredRecords(
                    first_offset=first_offset, last_offset=last_offset, delivery_count=delivery_count
                )
                for first_offset, last_offset, delivery_count in fetched.acquired
            ],
        )
        if fetched.error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            self._add_leader_hint(partition, data, response.node_endpoints)
        return data

    def _add_leader_hint(
        self, partition: TopicPartition, data: PartitionData, endpoints: list[NodeEndpoint]
    ) -> None:
        hint = leader_hint(self._call, partition)
        if hint is None:
            return
        data.current_leader = LeaderIdAndEpoch(leader_id=hint.leader_id, leader_epoch=hint.leader_epoch)
        node = hint.node
        if node is not None and all(known.node_id != node.id for known in endpoints):
            endpoints.append(NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack))


def add_topics(
    response: ShareFetchResponse, answers: Mapping[TopicPartition, PartitionData]
) -> ShareFetchResponse:
    """Put the answers of partitions into that of the request."""
    topics: dict[bytes, ShareFetchableTopicResponse] = {}
    for partition, data in answers.items():
        topic = topics.get(partition.topic_id)
        if topic is None:
            topic = topics[partition.topic_id] = ShareFetchableTopicResponse(topic_id=partition.topic_id)
            response.responses.append(topic)
        topic.partitions.append(data)
    return response


def error_response(request: ShareFetchRequest, code: ErrorCode) -> ShareFetchResponse:
    """Only the code: nothing is said of the partitions."""
    return ShareFetchResponse(error_code=code)
