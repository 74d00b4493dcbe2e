"""Our image of the metadata, in the words in which Kafka's is printed."""

from pathlib import Path

from broker.metadata.image import Endpoint, MetadataImage, PartitionImage
from broker.raft.log import MetadataLog
from protocol.uuids import uuid_to_text
from storage.config import LogConfig
from storage.filesystem import RealFileSystem
from storage.log_directory import LogDirectory


def our_image(data: Path) -> list[str]:
    """What the files of a log directory hold, which nobody has open."""
    directory = LogDirectory.open(
        str(data), RealFileSystem(), random_below=lambda _: 0, report=lambda _: None, now_ms=0
    )
    try:
        assert directory.properties is not None
        log = MetadataLog(directory.open_metadata_log(LogConfig(), now_ms=0), directory.services)
        return sorted(described(log.load(directory.properties.cluster_id or "", now_ms=0).replay.image))
    finally:
        directory.abandon()


def described(image: MetadataImage) -> list[str]:
    """A line for each thing, unsorted."""
    lines = [f"feature {name} {level}" for name, level in image.features.items()]
    for broker in image.brokers.values():
        lines.append(
            f"broker {broker.id} epoch {broker.epoch} {uuid_to_text(broker.incarnation_id)} "
            f"rack {broker.rack or '-'} fenced {str(broker.fenced).lower()} "
            f"shutdown {str(broker.in_controlled_shutdown).lower()} "
            f"directories {uuids(broker.directories)} {endpoints(broker.endpoints)}"
        )
    for controller in image.controllers.values():
        incarnation = uuid_to_text(controller.incarnation_id)
        lines.append(f"controller {controller.id} {incarnation} {endpoints(controller.endpoints)}")
    for topic in image.topics.values():
        lines.append(f"topic {topic.name} {uuid_to_text(topic.id)}")
        lines += [
            f"partition {topic.name} {index} {partition_words(partition)}"
            for index, partition in enumerate(topic.partitions)
        ]
    for (kind, name), settings in image.configs.items():
        lines += [f"config {int(kind)} {name} {key}={value}" for key, value in settings.items()]
    return [*lines, f"producer ids {image.next_producer_id or -1}", f"end {image.offset + 1}"]


def partition_words(partition: PartitionImage) -> str:
    return (
        f"replicas {numbers(partition.replicas)} isr {numbers(partition.isr)} "
        f"removing {numbers(partition.removing_replicas)} adding {numbers(partition.adding_replicas)} "
        f"elr {numbers(partition.eligible_leader_replicas)} last {numbers(partition.last_known_elr)} "
        f"leader {partition.leader} recovery {int(partition.leader_recovery_state)} "
        f"epochs {partition.leader_epoch} {partition.partition_epoch} "
        f"directories {uuids(partition.directories)}"
    )


def endpoints(found: tuple[Endpoint, ...]) -> str:
    return ",".join(sorted(f"{each.name}://{each.host}:{each.port}" for each in found))


def numbers(values: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, values))}]"


def uuids(values: tuple[bytes, ...]) -> str:
    return f"[{','.join(map(uuid_to_text, values))}]"
