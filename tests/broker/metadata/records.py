"""Records and images for tests, with as little said as possible."""

from collections.abc import Sequence

from broker.metadata.image import MetadataImage, empty_image
from broker.metadata.replay import apply
from protocol.schema import Message
from protocol.stored.metadata_records import (
    BrokerEndpoint,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from protocol.uuids import ZERO_UUID


def uuid(number: int) -> bytes:
    """A recognisable id: 1000 and up are not reserved."""
    return number.to_bytes(16, "big")


def directory(broker_id: int) -> bytes:
    """The id of a broker's only log directory."""
    return uuid(10_000 + broker_id)


def features(level: int = 33, *, elr: int = 1) -> list[Message]:
    """The two features on which records depend."""
    return [
        FeatureLevelRecord(name="metadata.version", feature_level=level),
        FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=elr),
    ]


def broker(
    broker_id: int, *, epoch: int = 100, fenced: bool = False, rack: str | None = None, directories: int = 1
) -> RegisterBrokerRecord:
    """A registered broker that listens as PLAINTEXT."""
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=uuid(20_000 + broker_id),
        broker_epoch=epoch,
        end_points=[BrokerEndpoint(name="PLAINTEXT", host=f"broker{broker_id}", port=9092)],
        rack=rack,
        fenced=fenced,
        log_dirs=[directory(broker_id + 100 * index) for index in range(directories)],
    )


def topic(name: str, topic_id: bytes, *partitions: Message) -> list[Message]:
    """A topic with partitions that ``partition`` made, in order."""
    records: list[Message] = [TopicRecord(name=name, topic_id=topic_id)]
    for index, record in enumerate(partitions):
        assert isinstance(record, PartitionRecord)
        record.partition_id = index
        record.topic_id = topic_id
        records.append(record)
    return records


def partition(
    replicas: Sequence[int],
    isr: Sequence[int] | None = None,
    *,
    leader: int | None = None,
    elr: Sequence[int] = (),
    last_known_elr: Sequence[int] = (),
    removing: Sequence[int] = (),
    adding: Sequence[int] = (),
) -> PartitionRecord:
    """A partition; all replicas are in sync, and the first of these leads, unless something else is said."""
    in_sync = list(replicas if isr is None else isr)
    return PartitionRecord(
        replicas=list(replicas),
        isr=in_sync,
        leader=(in_sync[0] if in_sync else -1) if leader is None else leader,
        leader_epoch=5,
        partition_epoch=7,
        directories=[directory(replica) for replica in replicas],
        eligible_leader_replicas=list(elr),
        last_known_elr=list(last_known_elr),
        removing_replicas=list(removing),
        adding_replicas=list(adding),
    )


def new_partition(
    replicas: Sequence[int],
    isr: Sequence[int] | None = None,
    *,
    leader: int | None = None,
    leader_epoch: int = 0,
    in_directory: bytes = ZERO_UUID,
) -> PartitionRecord:
    """A partition at its beginning; all its replicas lie in one directory, or nobody has said where."""
    made = partition(replicas, isr, leader=leader)
    made.leader_epoch, made.partition_epoch = leader_epoch, 0
    made.directories = [in_directory] * len(replicas)
    return made


def image_of(*records: Message | Sequence[Message], cluster_id: str = "cluster") -> MetadataImage:
    """The image that records make."""
    return after(empty_image(cluster_id), *records)


def after(image: MetadataImage, *records: Message | Sequence[Message]) -> MetadataImage:
    """The image that records make of another."""
    flat: list[Message] = []
    for record in records:
        if isinstance(record, Message):
            flat.append(record)
        else:
            flat += record
    if not flat:
        return image
    return apply(image, flat, offset=image.offset + len(flat), epoch=1)[0]
