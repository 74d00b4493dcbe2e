"""Metadata (3): the brokers, and which of them lead the partitions of some or all topics."""

from collections.abc import Iterable

from broker.apis.authorized_operations import ALL_ON_CLUSTER, ALL_ON_TOPIC
from broker.metadata import topic_names
from broker.metadata.client_view import ClientView, controller_id
from broker.metadata.image import MetadataImage, PartitionImage, TopicImage
from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from protocol.uuids import ZERO_UUID


def handle(request: MetadataRequest, call: Call) -> MetadataResponse | bytes:
    fault = find_fault(request, call.version)
    if fault is not None:
        return error_response(request, fault)
    image = call.services.image
    view = ClientView(image, call.listener.name, call.services.advertised.alive_nodes(image, call))
    asked = request.topics
    if asked is None or (call.version == 0 and not asked):  # before version 1 a list could not be null
        return answer_all(request, call, view)
    ids = dict.fromkeys(topic.topic_id for topic in asked if topic.topic_id != ZERO_UUID)
    if ids:
        topics = [by_id(topic_id, call, view) for topic_id in ids]
    else:
        topics = by_names([topic.name or "" for topic in asked], request, call, view)
    return respond(topics, request, call, view)


def find_fault(request: MetadataRequest, version: int) -> ErrorCode | None:
    """What is wrong with the request as a whole."""
    topics = request.topics or ()
    has_ids = any(topic.topic_id != ZERO_UUID for topic in topics)
    lacks_names = any(topic.name is None for topic in topics)
    if version < 12 and (has_ids or lacks_names):
        return ErrorCode.INVALID_REQUEST  # versions 10 and 11 have the fields, but no use for them
    if lacks_names and not has_ids:
        return ErrorCode.UNKNOWN_SERVER_ERROR  # beside an id what has none is not looked at
    return None


def by_id(topic_id: bytes, call: Call, view: ClientView) -> MetadataResponseTopic:
    """What is known of a topic asked for by its id; names given with it do not count."""
    topic = view.image.topics_by_id.get(topic_id)
    if topic is None:
        return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
    return describe(topic, call, view)


def by_names(
    names: Iterable[str], request: MetadataRequest, call: Call, view: ClientView
) -> list[MetadataResponseTopic]:
    """What is known of each topic, once; the creation of unknown ones begins if that is allowed.

    They are unknown in this answer all the same: clients come back for them.
    """
    found = []
    missing = []
    for name in dict.fromkeys(names):
        topic = view.image.topics.get(name)
        if topic is not None:
            found.append(describe(topic, call, view))
        else:
            missing.append(name)
    valid = [name for name in missing if topic_names.fault_in(name) is None]
    if valid and request.allow_auto_topic_creation and call.services.config.get("auto.create.topics.enable"):
        call.services.automatic_topics.create(valid, call)
    for name in missing:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if name in valid else ErrorCode.INVALID_TOPIC_EXCEPTION
        is_internal = name in topic_names.INTERNAL_TOPICS
        found.append(MetadataResponseTopic(error_code=code, name=name, is_internal=is_internal))
    return found


def describe(topic: TopicImage, call: Call, view: ClientView) -> MetadataResponseTopic:
    """A topic with all its partitions."""
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in topic_names.INTERNAL_TOPICS,
        partitions=[
            _describe_partition(index, partition, call.version, view)
            for index, partition in enumerate(topic.partitions)
        ],
    )


def _describe_partition(
    index: int, partition: PartitionImage, version: int, view: ClientView
) -> MetadataResponsePartition:
    leader, code = view.leader(partition)
    replicas = list(partition.replicas)
    isr = list(partition.isr)
    if code is ErrorCode.LISTENER_NOT_FOUND and version < 6:
        code = ErrorCode.LEADER_NOT_AVAILABLE
    if version == 0:  # its clients must be able to reach every broker they are told of
        replicas = [replica for replica in replicas if view.is_reachable(replica)]
        isr = [replica for replica in isr if view.is_reachable(replica)]
        is_complete = len(replicas) == len(partition.replicas) and len(isr) == len(partition.isr)
        if code is ErrorCode.NONE and not is_complete:
            code = ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=code,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=view.offline(partition),
    )


def respond(
    topics: list[MetadataResponseTopic], request: MetadataRequest, call: Call, view: ClientView
) -> MetadataResponse:
    """The answer around ``topics``."""
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.name is not None:
                topic.topic_authorized_operations = ALL_ON_TOPIC
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in view.alive
        ],
        cluster_id=call.services.cluster_id,
        controller_id=controller_id(view.alive, call.services.node_id),
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = ALL_ON_CLUSTER
    return response


def error_response(request: MetadataRequest, code: ErrorCode) -> MetadataResponse:
    """Kafka names nothing but the topics that were asked for."""
    topics = [
        MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
        for topic in request.topics or ()
    ]
    return MetadataResponse(topics=topics, error_code=code)


class _AnswersOfOneImage:
    """Whole answers, encoded: what clients of a large cluster ask for again and again."""

    def __init__(self) -> None:
        self.image: MetadataImage | None = None
        self.bodies: dict[object, bytes] = {}


_answers = _AnswersOfOneImage()


def answer_all(request: MetadataRequest, call: Call, view: ClientView) -> bytes:
    """The answer about all topics, kept until the image changes."""
    if _answers.image is not view.image:
        _answers.image = view.image
        _answers.bodies = {}
    key = (
        call.version,
        call.listener.name,
        tuple(view.alive),
        request.include_topic_authorized_operations,
        request.include_cluster_authorized_operations,
    )
    body = _answers.bodies.get(key)
    if body is None:
        topics = [describe(topic, call, view) for topic in view.image.topics.values()]
        body = respond(topics, request, call, view).encode(call.version)
        if len(_answers.bodies) < ANSWERS_KEPT_MAX:
            _answers.bodies[key] = body
    return body


ANSWERS_KEPT_MAX = 64
"""Different questions about one image; beyond them an answer is made anew each time."""
