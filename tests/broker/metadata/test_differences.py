"""The differences of two images are what records would have told that lead from one to the other."""

from random import Random
from typing import Any

from broker.controller.automatic_topics import topic_defaults
from broker.controller.topics import NewTopic, create_topics, delete_topics
from broker.metadata.differences import differences
from broker.metadata.image import MetadataImage, ResourceType, empty_image
from broker.metadata.replay import MetadataChanges, apply
from protocol.stored.metadata_records import ClientQuotaRecord, ConfigRecord, EntityData, FenceBrokerRecord
from tests.broker.controller.node import ControllerNode


def told(changes: MetadataChanges) -> dict[str, Any]:
    return {name: getattr(changes, name) for name in MetadataChanges.__slots__}


def after(image: MetadataImage, *records: Any) -> tuple[MetadataImage, MetadataChanges]:
    return apply(image, records, offset=image.offset + len(records), epoch=1)


def test_an_image_does_not_differ_from_itself() -> None:
    image = ControllerNode().start()
    assert not differences(image, image)


def test_everything_is_new_to_who_knew_nothing() -> None:
    node = ControllerNode()
    image = node.start()
    changes = differences(empty_image(image.cluster_id), image)
    assert changes.brokers == {1}
    assert changes.controllers == {1}
    assert "metadata.version" in changes.features


def test_they_are_those_of_the_records_between(chance: Random) -> None:
    node = ControllerNode()
    image = first = node.start()
    defaults = topic_defaults(node.services)
    steps = 0
    for number in range(60):
        kind = chance.randrange(5)
        if kind == 0:
            records = create_topics(image, [NewTopic(f"t{number}", 2, 1)], defaults).records
        elif kind == 1 and image.topics:
            name = chance.choice(list(image.topics))
            records = delete_topics(image, [image.topics[name].id]).records
        elif kind == 2:
            value = chance.choice([None, "1", "2"])
            record = ConfigRecord(
                resource_type=ResourceType.BROKER, resource_name="1", name="log.cleaner.threads", value=value
            )
            records = [(record, 0)]
        elif kind == 3:
            quota = ClientQuotaRecord(
                entity=[EntityData(entity_type="user", entity_name=f"u{chance.randrange(3)}")],
                key="producer_byte_rate",
                value=chance.choice([1.0, 2.0]),
                remove=chance.random() < 0.3,
            )
            records = [(quota, 0)]
        else:
            continue
        before, steps = image, steps + 1
        image, changes = after(before, *[record for record, _ in records])
        found = differences(before, image)
        # Records may say what is so already.
        for name, value in told(found).items():
            assert value.items() <= getattr(changes, name).items() if isinstance(value, dict) else True
            if isinstance(value, set):
                assert value <= getattr(changes, name)
        assert found.topics == changes.topics
        assert found.deleted_topics == changes.deleted_topics
    assert steps > 20
    whole = differences(first, image)
    assert {topic.name for topic in whole.topics.values()} == set(image.topics)
    assert not whole.deleted_topics


def test_a_fenced_broker_is_a_change() -> None:
    image = ControllerNode().start()
    fenced, _ = after(image, FenceBrokerRecord(id=1, epoch=image.brokers[1].epoch))
    assert differences(image, fenced).brokers == {1}
    assert not differences(image, fenced).topics
