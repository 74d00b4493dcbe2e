"""What happens to a controller, scene by scene.  Every scene has brokers of its own."""

from collections.abc import Awaitable, Callable
from typing import Final

from protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from protocol.messages.broker_registration import Listener
from protocol.messages.controller_registration import ControllerRegistrationRequest
from protocol.messages.controller_registration import Listener as ControllerListener
from protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import CreateTopicsRequest
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.envelope import EnvelopeRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from protocol.messages.unregister_broker import UnregisterBrokerRequest
from protocol.messages.unregister_controller import UnregisterControllerRequest
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from protocol.principal import ANONYMOUS, encode_principal
from tests.golden.controller.play import Play, directory, features, number

Scene = Callable[[Play], Awaitable[None]]


async def registrations(play: Play) -> None:
    await play.register(11, cluster_id="another")
    await play.register(11, log_dirs=[])
    await play.register(11, log_dirs=[number(5)])
    await play.register(11, log_dirs=[directory(11), directory(11)])
    await play.register(11, is_migrating_zk_broker=True)
    await play.register(11, features=[])
    await play.register(11, features=features(metadata__version=(7, 32)))
    await play.register(11, features=features(group__version=(0, 0)))
    await play.register(11, features=features(kraft__version=(0, 0)))
    await play.register(11, features=features(unknown__version=(0, 3)))
    await play.register(11, features=features(unknown__version=(1, 3)))
    await play.register(11, features=[one for one in features() if one.name != "kraft.version"])
    await play.register(11, features=[one for one in features() if one.name != "share.version"])
    await play.register(11, 1, log_dirs=[], features=features())
    await play.register(11, 2)
    await play.register(11, 3, rack="here")
    await play.register(11, again=True, rack="there")
    await play.register(12, log_dirs=[directory(12), directory(11)])
    await play.register(12, log_dirs=[directory(12, 1), directory(12)])
    await play.register(
        13,
        listeners=[
            Listener(name="OUT", host="a", port=1),
            Listener(name="IN", host="b", port=2, security_protocol=3),
        ],
    )
    await play.register(13, listeners=[])


async def heartbeats(play: Play) -> None:
    await play.beat(19, epoch=5)
    await play.register(11)
    epoch = play.epochs[11]
    await play.beat(11, epoch=epoch + 1)
    await play.beat(11, epoch=-1)
    await play.beat(11, current_metadata_offset=epoch - 1, want_fence=True)
    await play.beat(11, current_metadata_offset=epoch - 1)
    await play.beat(11, want_fence=True)
    await play.beat(11, 0)
    await play.beat(11, 1)
    await play.register(11)  # while the session of the other lasts
    await play.register(11, again=True)
    await play.beat(11, current_metadata_offset=play.epochs[11])
    await play.beat(11)
    await play.beat(11, want_fence=True)
    await play.beat(11, want_fence=True, want_shut_down=True)


async def shutdowns(play: Play) -> None:
    await play.come(21, 22, 23)
    await play.make("shutdowns", [21, 22, 23], [22, 21, 23], [23, 21, 22])
    await play.beat(22, current_metadata_offset=play.epochs[23])
    await play.beat(21, want_shut_down=True)
    await play.beat(21, want_shut_down=True)
    await play.beat(21)
    await play.propose("shutdowns", [22, 21], index=1)
    await play.beat(22)
    await play.beat(23)
    await play.beat(21, want_shut_down=True)
    await play.beat(22, want_shut_down=True, want_fence=True)
    await play.beat(23, want_shut_down=True)
    await play.beat(23, want_shut_down=True)


async def in_sync_sets(play: Play) -> None:
    await play.come(31, 32, 33)
    await play.register(34)
    await play.make("isr", [31, 32, 33], [31, 34, 32], [32, 31, 33])
    await play.propose("isr", [31])
    await play.propose("isr", [31], version=2)
    await play.propose("isr", [31, 32])
    await play.propose("isr", [31, 32, 33], version=2)
    for wrong in ([], [32, 33], [31, 31], [31, 35], [31, 34]):
        await play.propose("isr", wrong)
    await play.propose("isr", [31, 34], index=1)
    await play.propose("isr", [31, 34], index=1, epochs=[-1, -1])
    await play.propose("isr", [31, 32], epochs=[-1, 5])
    await play.propose("isr", [31, 32], epochs=[-1, -1])
    await play.propose("isr", [31, 32], newer_leader_epoch=1)
    await play.propose("isr", [31, 32], newer_leader_epoch=-1)
    await play.propose("isr", [31, 32], newer_partition_epoch=1)
    await play.propose("isr", [31, 32], newer_partition_epoch=-1)
    await play.propose("isr", [31, 32], newer_partition_epoch=1, newer_leader_epoch=-1)
    await play.propose("isr", [31, 32], broker_id=32)
    await play.propose("isr", [31, 32], broker_id=32, newer_partition_epoch=-1)
    await play.propose("isr", [31, 32], broker_id=39)
    await play.propose("isr", [31], recovering=True)
    await play.beat(33, want_shut_down=True)
    await play.propose("isr", [31, 32, 33])
    await play.beat(33, want_fence=True)
    await play.propose("isr", [31, 32, 33])


async def eligible_replicas(play: Play) -> None:
    await play.come(41, 42, 43)
    await play.make("elr", [41, 42, 43], min__insync__replicas="2")
    await play.propose("elr", [41, 42])
    await play.propose("elr", [41])
    await play.propose("elr", [41, 43])
    await play.propose("elr", [41])
    await play.beat(41, want_fence=True)
    await play.beat(43, want_fence=True)
    await play.beat(42, want_fence=True)
    await play.beat(43)
    await play.propose("elr", [43, 42])
    await play.beat(42)
    await play.propose("elr", [43, 42])
    await play.beat(42, want_fence=True)
    await play.beat(43, want_fence=True)
    await play.beat(43, want_shut_down=True)


async def last_known_leaders(play: Play) -> None:
    await play.come(51, 52)
    await play.make("last", [51, 52])
    await play.make("unclean", [51, 52], unclean__leader__election__enable="true")
    await play.propose("last", [51])
    await play.propose("unclean", [51])
    await play.beat(51, want_fence=True, want_shut_down=True)
    await play.beat(52, want_fence=True)
    await play.beat(52)
    await play.propose("unclean", [52], recovering=True)
    await play.propose("unclean", [52, 51], recovering=True)
    await play.propose("unclean", [52])
    await play.propose("unclean", [52], recovering=True)


async def reassignments(play: Play) -> None:
    await play.come(61, 62, 63, 64)
    await play.register(65)
    await play.make("moving", [61, 62], [61, 62], [62, 61])

    async def move(*wanted: tuple[str, int, list[int] | None], may_change: bool = True) -> None:
        topics: dict[str, list[ReassignablePartition]] = {}
        for topic, index, replicas in wanted:
            topics.setdefault(topic, []).append(
                ReassignablePartition(partition_index=index, replicas=replicas)
            )
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=10_000,
            allow_replication_factor_change=may_change,
            topics=[ReassignableTopic(name=name, partitions=parts) for name, parts in topics.items()],
        )
        await play.ask(request, 1)
        await play.ask(ListPartitionReassignmentsRequest(topics=None, timeout_ms=10_000), 0)

    await move(("unknown", 0, [61]), ("moving", 9, [61]), ("moving", 0, []), ("moving", 0, [61, 61]))
    await move(("moving", 0, [61, 69]), ("moving", 0, None))
    await move(("moving", 0, [61, 62, 63]), may_change=False)
    await move(("moving", 0, [62, 61]))
    await move(("moving", 0, [63, 64]))
    await play.propose("moving", [61, 62, 63])
    await play.propose("moving", [61, 62, 63, 64])
    await move(("moving", 1, [61, 62, 63]))
    await play.propose("moving", [61, 62, 63], index=1)
    await move(("moving", 1, [63]))
    await move(("moving", 2, [63, 64]))
    await play.propose("moving", [62, 61, 63], index=2)
    await move(("moving", 2, [64, 61]))
    await move(("moving", 2, None))
    await move(("moving", 2, [65, 61]))
    await play.beat(62, want_fence=True)
    await play.propose("moving", [61, 65], index=2)
    await play.beat(65)
    await play.propose("moving", [61, 65], index=2)


async def elections(play: Play) -> None:
    await play.come(71, 72, 73)
    await play.make("elect", [71, 72], [72, 71], [71, 73])

    async def elect(kind: int, *wanted: tuple[str, list[int]], version: int = 2) -> None:
        topics = [TopicPartitions(topic=topic, partitions=partitions) for topic, partitions in wanted]
        request = ElectLeadersRequest(election_type=kind, topic_partitions=topics, timeout_ms=10_000)
        await play.ask(request, version)

    await elect(0, ("elect", [0, 9]), ("unknown", [0]))
    await elect(1, ("elect", [0, 9]), ("unknown", [0]))
    await elect(7, ("elect", [0]))
    await play.beat(71, want_fence=True)
    await elect(0, ("elect", [0]))
    await play.beat(71)
    await elect(0, ("elect", [0]))
    await play.propose("elect", [72, 71])
    await elect(0, ("elect", [0, 1]), version=0)
    await play.propose("elect", [73, 71], index=2)
    await elect(0, ("elect", [2]), version=1)
    await play.propose("elect", [72], index=1)
    await play.beat(72, want_fence=True, want_shut_down=True)
    await elect(0, ("elect", [1]))
    await elect(1, ("elect", [1]))
    await elect(1, ("elect", [1]))


async def unclean_restarts(play: Play) -> None:
    await play.come(81, 82, 83)
    await play.make("crash", [81, 82, 83], [82, 81, 83], [81, 83, 82], min__insync__replicas="2")
    await play.beat(81, want_fence=True, want_shut_down=True)
    await play.beat(82, want_fence=True)
    await play.beat(83, want_fence=True)
    await play.ask(UnregisterBrokerRequest(broker_id=83), 0)
    await play.register(83, previous_broker_epoch=5)
    await play.beat(83)
    await play.ask(UnregisterBrokerRequest(broker_id=82), 0)
    await play.register(82)
    await play.beat(82)


async def directories(play: Play) -> None:
    await play.come(91, log_dirs=[directory(91), directory(91, 1)])
    await play.come(92, 93)
    await play.make("placed", [91, 92], [91, 93], [92, 91])

    async def assign(index: int, *partitions: int, topic: str = "placed", broker_id: int = 91) -> None:
        topic_id = play.topics.get(topic, number(77_777))
        request = AssignReplicasToDirsRequest(
            broker_id=broker_id,
            broker_epoch=play.epochs.get(broker_id, 0),
            directories=[
                AssignReplicasToDirsRequestDirectoryData(
                    id=directory(91, index),
                    topics=[
                        AssignReplicasToDirsRequestTopicData(
                            topic_id=topic_id,
                            partitions=[
                                AssignReplicasToDirsRequestPartitionData(partition_index=partition)
                                for partition in partitions
                            ],
                        )
                    ],
                )
            ],
        )
        await play.ask(request, 0)

    await assign(0, 0, 2, 9)
    await assign(1, 1)
    await assign(1, 0, broker_id=93)
    await assign(0, 0, broker_id=99)
    await assign(0, 0, topic="unknown")
    await play.propose("placed", [91, 92])
    await play.beat(91, offline_log_dirs=[directory(91, 1)])
    await play.beat(91, offline_log_dirs=[directory(91, 1), directory(91, 7)])
    await assign(1, 0)
    await play.beat(91, cordoned_log_dirs=[directory(91)])
    await play.beat(91, cordoned_log_dirs=[directory(91)])
    await play.make("refused", [91, 92])
    await play.beat(91, cordoned_log_dirs=[])
    await play.beat(92, cordoned_log_dirs=[])


async def unregistered(play: Play) -> None:
    await play.come(101, 102)
    await play.make("left", [101, 102], [102, 101])
    await play.ask(UnregisterBrokerRequest(broker_id=109), 0)
    await play.ask(UnregisterBrokerRequest(broker_id=101), 0)
    await play.beat(101)
    await play.propose("left", [101, 102], index=1)
    await play.make("more", [101, 102])


async def topics(play: Play) -> None:
    await play.come(111, 112)
    await play.register(113)
    await play.make("factors", [111, 112, 113], [112, 113])
    await play.make("no-leader", [113])
    await play.make("mixed", [111, 112], [111])
    await play.make("twice", [111, 111])
    await play.make("stranger", [111, 119])
    await play.make("empty", [])

    async def grow(count: int, *replicas: list[int]) -> None:
        wanted = CreatePartitionsTopic(
            name="factors",
            count=count,
            assignments=[CreatePartitionsAssignment(broker_ids=ids) for ids in replicas] or None,
        )
        await play.ask(CreatePartitionsRequest(topics=[wanted], timeout_ms=10_000), 3)

    await grow(3, [111, 112, 113])
    await grow(4, [111, 112])
    await grow(4, [113, 112, 111], [111, 112, 113])
    await grow(4, [113, 112, 119])
    await grow(4, [113, 112, 112])
    await grow(4, [113, 112, 111])


async def settings(play: Play) -> None:
    await play.come(121, 122, 123)
    await play.make("kept", [121, 122, 123], min__insync__replicas="3")
    await play.propose("kept", [121])

    async def alter(kind: int, name: str, key: str, value: str | None, operation: int = 0) -> None:
        change = AlterableConfig(name=key, config_operation=operation, value=value)
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])
        await play.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)

    await alter(2, "kept", "unclean.leader.election.enable", "true")
    await alter(2, "kept", "min.insync.replicas", "2")
    await play.propose("kept", [121, 122])
    await play.propose("kept", [121])
    await alter(4, "", "min.insync.replicas", "2")
    await alter(4, "", "min.insync.replicas", None, 1)
    await alter(4, "121", "min.insync.replicas", "2")
    await alter(4, "", "min.insync.replicas", "1")


async def producer_ids(play: Play) -> None:
    await play.register(131)
    for broker_id in (131, 131, 139):
        request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=play.epochs.get(broker_id, 0))
        await play.ask(request, 0)
    await play.ask(AllocateProducerIdsRequest(broker_id=131, broker_epoch=-1), 0)


async def envelopes(play: Play) -> None:
    await play.ask(EnvelopeRequest(), 0)
    principal = encode_principal(ANONYMOUS)
    host = bytes([10, 0, 0, 9])
    creation = b"\0\x13\0\x07\0\0\0\x4d\xff\xff\0"  # CreateTopics version 7
    body = CreateTopicsRequest(timeout_ms=10_000).encode(7)
    metadata = b"\0\x03\0\x0c\0\0\0\x4d\xff\xff\0"
    for data, who, where in (
        (creation + body, None, host),
        (creation + body, b"\0\1", host),
        (creation + body, principal, b"\1\2\3"),
        (creation + body, principal, host),
        (creation, principal, host),
        (metadata + b"\0\0\0\0", principal, host),
        (b"\0", principal, host),
        (b"\x7f\xff" + bytes(8), principal, host),
        (b"\0\x13\0\x63" + bytes(8), principal, host),
        (b"\0\x3a\0\0" + bytes(8), principal, host),
        (b"\0\x07\0\0" + bytes(8), principal, host),
    ):
        request = EnvelopeRequest(request_data=data, request_principal=who, client_host_address=where)
        await play.ask(request, 0)


async def controllers(play: Play) -> None:
    request = ControllerRegistrationRequest(
        controller_id=3000,
        incarnation_id=number(3000),
        listeners=[ControllerListener(name="CONTROLLER", host="c", port=9093)],
    )
    await play.ask(request, 0)


async def feature_levels(play: Play) -> None:
    """The controller of the last scene counts as well: it supports nothing."""
    await play.register(151, features=features(streams__version=(0, 1), share__version=(0, 3)))

    async def update(feature: str, level: int, kind: int = 1) -> None:
        key = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
        await play.ask(UpdateFeaturesRequest(feature_updates=[key], timeout_ms=10_000), 2)

    await update("share.version", 3)
    await update("share.version", 1, 2)
    await update("transaction.version", 2)
    await play.ask(UnregisterControllerRequest(controller_id=3000), 0)
    await play.register(152, features=features(share__version=(2, 2), unknown__version=(0, 7)))
    await update("share.version", 1, 2)
    await update("share.version", 3)
    await update("unknown.version", 1)
    await update("eligible.leader.replicas.version", 0, 2)
    await play.come(153, 154)
    await play.make("without-elr", [153, 154])
    await play.propose("without-elr", [153])
    await play.beat(153, want_fence=True)
    await update("eligible.leader.replicas.version", 1)
    await play.beat(153)
    await play.propose("without-elr", [153, 154])
    await play.beat(154, want_fence=True)
    await play.beat(153, want_fence=True)
    await play.beat(154)
    await play.make("with-elr", [154, 153])
    await update("metadata.version", 25, 2)


async def uneven_topics(play: Play) -> None:
    await play.come(161, 162, 163)
    await play.make("uneven", [161, 162], [161, 162], [161, 162])
    wider = ReassignablePartition(partition_index=2, replicas=[161, 162, 163])
    await play.ask(
        AlterPartitionReassignmentsRequest(
            timeout_ms=10_000, topics=[ReassignableTopic(name="uneven", partitions=[wider])]
        ),
        0,
    )
    for replicas in ([163, 162], [163, 162, 161]):
        grown = CreatePartitionsTopic(
            name="uneven", count=4, assignments=[CreatePartitionsAssignment(broker_ids=replicas)]
        )
        await play.ask(CreatePartitionsRequest(topics=[grown], timeout_ms=10_000), 3)


SCENES: Final[tuple[Scene, ...]] = (
    registrations,
    heartbeats,
    shutdowns,
    in_sync_sets,
    eligible_replicas,
    last_known_leaders,
    reassignments,
    elections,
    unclean_restarts,
    directories,
    unregistered,
    topics,
    settings,
    producer_ids,
    envelopes,
    controllers,
    feature_levels,
    uneven_topics,
)


async def perform(play: Play) -> None:
    """All scenes, one after the other."""
    for scene in SCENES:
        await play.scene(scene.__name__)
        await scene(play)
