"""Feature levels: what cannot be seen on one broker of one release stands here, the rest in the oracle."""

from collections.abc import Mapping

import pytest
import trio

from broker.controller.brokers import unregister_broker, unregister_controller
from broker.controller.elections import TopicRules
from broker.controller.features import FeatureUpdate, Quorum, UpgradeType, update_features
from broker.metadata.features import SUPPORTED_FEATURES
from broker.metadata.image import MetadataImage
from broker.metadata.records import VersionedRecord
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from protocol.schema import Message
from protocol.stored.metadata_records import (
    BrokerFeature,
    ConfigRecord,
    ControllerFeature,
    FeatureLevelRecord,
    NoOpRecord,
    RegisterControllerRecord,
)
from tests.broker.controller.node import ControllerNode
from tests.broker.metadata.records import after, broker, directory, features, image_of, partition, topic, uuid

UP, SAFE, UNSAFE = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE


def node(broker_id: int, supported: Mapping[str, tuple[int, int]] = SUPPORTED_FEATURES) -> Message:
    """A broker with features."""
    made = broker(broker_id)
    made.features = [
        BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in supported.items()
    ]
    return made


def controller(controller_id: int, supported: Mapping[str, tuple[int, int]]) -> Message:
    return RegisterControllerRecord(
        controller_id=controller_id,
        features=[
            ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in supported.items()
        ],
    )


def update(
    image: MetadataImage, name: str, level: int, how: int = UP, *, kraft_version: int = 1
) -> list[VersionedRecord]:
    decision = update_features(
        image,
        Quorum(1, kraft_version),
        {name: FeatureUpdate(level, how)},
        validate_only=False,
        static_min_isr=2,
    )
    return list(decision.records)


def level_record(name: str, level: int) -> VersionedRecord:
    return FeatureLevelRecord(name=name, feature_level=level), 0


@pytest.mark.parametrize(("current", "level"), [(25, 33), (25, 26), (30, 30)])
def test_the_metadata_version_goes_up(current: int, level: int) -> None:
    image = image_of(features(current), node(1))
    assert update(image, "metadata.version", level) == [level_record("metadata.version", level)]


@pytest.mark.parametrize(("current", "level"), [(29, 25), (27, 26), (31, 30)])
@pytest.mark.parametrize("how", [SAFE, UNSAFE])
def test_the_metadata_version_goes_down_where_records_stay_the_same(
    current: int, level: int, how: UpgradeType
) -> None:
    image = image_of(features(current), node(1))
    assert update(image, "metadata.version", level, how) == [level_record("metadata.version", level)]
    with pytest.raises(KafkaError, match="Can't downgrade the version of this feature without"):
        update(image, "metadata.version", level)


@pytest.mark.parametrize(("current", "level"), [(33, 32), (32, 31), (30, 29), (33, 25), (31, 29)])
def test_and_nowhere_else(current: int, level: int) -> None:
    image = image_of(features(current), node(1))
    start = f"INVALID_UPDATE_VERSION: Unsupported metadata.version downgrade from {current} to {level}. "
    for how, reason in (
        (
            SAFE,
            "Refusing to perform the requested downgrade because it might delete metadata information.",
        ),
        (UNSAFE, "Unsafe metadata downgrade is not supported in this version."),
    ):
        with pytest.raises(KafkaError) as raised:
            update(image, "metadata.version", level, how)
        assert str(raised.value) == start + reason


def test_others_depend_on_the_metadata_version_that_is_wished_for() -> None:
    """One that comes first, in Kafka's order, says this, and not what is wrong with the metadata version."""
    wished = {"metadata.version": FeatureUpdate(0, UP), "group.version": FeatureUpdate(1, UP)}
    with pytest.raises(KafkaError) as raised:
        update_features(
            image_of(features(), node(1)), Quorum(1, 1), wished, validate_only=False, static_min_isr=2
        )
    assert raised.value.message == (
        "Invalid update version 1 for feature group.version. group.version could not be set to 1 because it "
        "depends on metadata.version=7 (3.3-IV3)"
    )


@pytest.mark.parametrize(
    ("others", "fault"),
    [
        ([node(2, {})], "Broker 2 does not support this feature."),
        ([node(2, {"share.version": (0, 1)})], "Broker 2 only supports versions 0-1"),
        ([node(2, {"share.version": (1, 1)})], "Broker 2 only supports versions 1"),
        ([controller(3, {})], "Controller 3 does not support this feature."),
        ([controller(1, {})], None),
    ],
)
def test_every_node_must_support_a_level(others: list[Message], fault: str | None) -> None:
    image = image_of(features(), node(1), others)
    if fault is None:
        assert update(image, "share.version", 2) == [level_record("share.version", 2)]
    else:
        with pytest.raises(KafkaError) as raised:
            update(image, "share.version", 2)
        assert raised.value.code == ErrorCode.INVALID_UPDATE_VERSION
        assert raised.value.message == f"Invalid update version 2 for feature share.version. {fault}"


def test_all_brokers_agree_on_who_is_in_sync_before_there_are_eligible_leaders() -> None:
    def setting(name: str, value: str | None = "3", key: str = "min.insync.replicas") -> ConfigRecord:
        return ConfigRecord(resource_type=4, resource_name=name, name=key, value=value)

    image = image_of(
        features(elr=0), node(1), setting("10"), setting("9"), setting("8", key="log.retention.ms")
    )
    elr = "eligible.leader.replicas.version"
    level = level_record(elr, 1)
    removals = [(setting("9", None), 0), (setting("10", None), 0)]
    assert update(image, elr, 1) == [(setting("", "2"), 0), *removals, level]
    image = after(image, setting(""))
    assert update(image, elr, 1) == [*removals, level]


async def test_the_quorum_goes_over_to_voters_that_can_change() -> None:
    """kraft.version stands in the control records, before a record that does nothing."""
    one = ControllerNode()
    one.format = one.format._replace(controller_endpoints=())
    one.start()
    assert one.raft.kraft_version == 0
    assert update(one.image, "kraft.version", 1, kraft_version=0) == [(NoOpRecord(), 0)]

    async def ask(validate_only: bool) -> UpdateFeaturesResponse:
        wanted = FeatureUpdateKey(feature="kraft.version", max_version_level=1)
        request = UpdateFeaturesRequest(feature_updates=[wanted], validate_only=validate_only)
        answer: UpdateFeaturesResponse = await one.ask(request, UpdateFeaturesResponse, 2)
        assert answer.error_code == 0, answer
        return answer

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.controller.run)
        await ask(validate_only=True)
        assert one.raft.feed.finalized_features.get("kraft.version") is None
        await ask(validate_only=False)
        nursery.cancel_scope.cancel()
    for _ in range(2):
        assert one.raft.feed.finalized_features["kraft.version"] == 1
        (voter,) = one.raft.voters
        assert (voter.id, voter.endpoints[0]) == (1, ("CONTROLLER", "127.0.0.1", 9093))
        assert voter.directory_id == one.directory.id
        one.stop()
        one.start()


def rules(image: MetadataImage) -> TopicRules:
    return TopicRules(image, default_min_isr=1, default_unclean_election=False)


class TestUnregistering:
    def test_a_broker_leaves_its_partitions_and_keeps_its_replicas(self) -> None:
        image = image_of(
            features(), broker(1), broker(2), topic("a", uuid(1000), partition([1, 2]), partition([1]))
        )
        records = [record for record, _ in unregister_broker(image, 1, rules(image)).records]
        left = after(image, records)
        assert list(left.brokers) == [2]
        shared, alone = left.topics["a"].partitions
        assert (shared.replicas, shared.leader, shared.isr) == ((1, 2), 2, (2,))
        assert (alone.leader, alone.isr, alone.eligible_leader_replicas) == (-1, (), (1,))
        assert alone.directories == (directory(1),)

    def test_a_controller_that_is_gone(self) -> None:
        image = image_of(features(), controller(1, {}), controller(2, {}))
        records = [record for record, _ in unregister_controller(image, 2, active_id=1).records]
        assert list(after(image, records).controllers) == [1]

    def test_before_its_level_no_controller_is_unregistered(self) -> None:
        image = image_of(features(32), controller(1, {}), controller(2, {}))
        for controller_id, code in ((2, ErrorCode.UNSUPPORTED_VERSION), (1, ErrorCode.INVALID_REQUEST)):
            with pytest.raises(KafkaError) as raised:
                unregister_controller(image, controller_id, active_id=1)
            assert raised.value.code == code

    def test_the_controller_s_own_broker_comes_back_with_the_next_start(self) -> None:
        one = ControllerNode()
        one.start()
        one.perform(lambda image: unregister_broker(image, 1, rules(image)))
        assert one.image.brokers == {}
        one.stop()
        assert one.start().brokers[1].is_active
