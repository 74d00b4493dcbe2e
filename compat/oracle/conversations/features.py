"""UpdateFeatures: levels that go up and down, and what is served below them."""

from compat.oracle.conversation import conversation
from compat.oracle.conversations import consumer_groups, share_groups, streams_groups
from compat.oracle.conversations.cluster import hello
from compat.oracle.conversations.configs import BROKER, DELETE, SET, Change, change, describe
from compat.oracle.conversations.streams_groups import topology
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from protocol.messages.share_fetch import ShareFetchRequest
from protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
)
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

UNKNOWN, UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = range(4)

METADATA, KRAFT, GROUPS, SHARE, STREAMS, TRANSACTIONS, ELR = (
    "metadata.version",
    "kraft.version",
    "group.version",
    "share.version",
    "streams.version",
    "transaction.version",
    "eligible.leader.replicas.version",
)

WITH_TYPES = "1+"
"""The versions that can do more than raise a level."""

MIN_ISR = "min.insync.replicas"


def update(*levels: tuple[str, int, int], validate_only: bool = False) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=how)
            for name, level, how in levels
        ],
        validate_only=validate_only,
    )


def set_level(talk: Talk, name: str, level: int, how: int = UPGRADE) -> None:
    """Change a level, and wait until the broker goes by it."""
    assert not talk.quietly(update((name, level, how))).error_code
    until_level(talk, name, level)


def until_level(talk: Talk, name: str, level: int) -> None:
    talk.until(
        hello(),
        lambda answer: (
            level
            == {feature.name: feature.max_version_level for feature in answer.finalized_features}.get(name, 0)
        ),
    )
    talk.settle()


@conversation(ApiKey.UPDATE_FEATURES, alone=True)
def raising(talk: Talk) -> None:
    def ask(label: str, *levels: tuple[str, int]) -> None:
        talk.ask(label, update(*((name, level, UPGRADE) for name, level in levels)))

    ask("nothing")
    for name, level in ((METADATA, 33), (KRAFT, 1), (GROUPS, 1), (SHARE, 2), (ELR, 1)):
        ask(f"{name}, where it is", (name, level))
        ask(f"{name}, too low", (name, level - 1))
        ask(f"{name}, too high", (name, level + 1))
        ask(f"{name}, below zero", (name, -1))
    ask("what nobody knows", ("nowhere", 1))
    ask("what nobody knows, at 0", ("nowhere", 0))
    ask("a feature without a name", ("", 0))
    ask("several", (GROUPS, 1), (TRANSACTIONS, 2), (STREAMS, 1))
    ask("good and bad", (GROUPS, 1), ("nowhere", 3), ("elsewhere", 2), (SHARE, 3))
    ask("one twice", (GROUPS, 1), (GROUPS, 0))
    ask("one twice, the other way round", (GROUPS, 0), (GROUPS, 1))


@conversation(ApiKey.UPDATE_FEATURES, rounds="0")
def what_version_0_allows(talk: Talk) -> None:
    """Whether a level may be lowered has no effect any more."""
    for allowed in (False, True):
        lowered = FeatureUpdateKey(feature=SHARE, max_version_level=1, allow_downgrade=allowed)
        talk.ask(f"lower: {allowed}", UpdateFeaturesRequest(feature_updates=[lowered]))


@conversation(ApiKey.UPDATE_FEATURES, rounds=WITH_TYPES, alone=True)
def types(talk: Talk) -> None:
    for how in (UNKNOWN, UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, 4, -1):
        for name, levels in (
            (GROUPS, (0, 1, 2, -1)),
            (SHARE, (0, 1, 2, 3)),
            (METADATA, (25, 31, 32, 33)),
            (KRAFT, (0, 1, 2)),
            ("nowhere", (0, 1)),
        ):
            for level in levels:
                talk.ask(f"{name} {level} by {how}", update((name, level, how), validate_only=True))
    talk.ask("several", update((GROUPS, 0, SAFE_DOWNGRADE), (SHARE, 1, UPGRADE), validate_only=True))
    talk.ask("of all that, nothing has happened", hello())


@conversation(ApiKey.UPDATE_FEATURES, rounds=WITH_TYPES, alone=True)
def down_and_up(talk: Talk) -> None:
    for name, high, how in (
        (GROUPS, 1, SAFE_DOWNGRADE),
        (SHARE, 2, UNSAFE_DOWNGRADE),
        (STREAMS, 1, SAFE_DOWNGRADE),
        (TRANSACTIONS, 2, SAFE_DOWNGRADE),
        (ELR, 1, UNSAFE_DOWNGRADE),
    ):
        talk.ask(f"{name} down", update((name, high - 1, how)))
        until_level(talk, name, high - 1)
        talk.ask(f"{name} is down", hello())
        talk.ask(f"{name} down again", update((name, high - 1, how)))
        talk.ask(f"{name} higher, as if it were lower", update((name, high, how)))
        talk.ask(f"{name} up", update((name, high, UPGRADE)))
        until_level(talk, name, high)
    talk.ask("all are up", hello())


@conversation(
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    ApiKey.STREAMS_GROUP_HEARTBEAT,
    ApiKey.STREAMS_GROUP_DESCRIBE,
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
    alone=True,
)
def groups_that_are_not_there(talk: Talk) -> None:
    """Below level 1 of its feature a kind of group is not served."""
    topic = talk.topic("t")
    group = talk.name("g")
    kinds = {
        GROUPS: (
            consumer_groups.join(group, "m", topic),
            consumer_groups.describe(group, "another"),
        ),
        SHARE: (
            share_groups.beat(group, "m", 0, topics=[topic]),
            share_groups.describe(group, "another"),
            ShareFetchRequest(group_id=group, member_id="m"),
            ShareAcknowledgeRequest(group_id=group, member_id="m"),
            DescribeShareGroupOffsetsRequest(
                groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)]
            ),
            AlterShareGroupOffsetsRequest(group_id=group),
            DeleteShareGroupOffsetsRequest(group_id=group),
        ),
        STREAMS: (
            streams_groups.join(group, "m", topology()),
            streams_groups.describe(group, "another"),
            StreamsGroupTopologyDescriptionUpdateRequest(group_id=group, member_id="m"),
        ),
    }
    highest = {GROUPS: 1, SHARE: 2, STREAMS: 1}
    for name, requests in kinds.items():
        set_level(talk, name, 0, UNSAFE_DOWNGRADE)
        for request in requests:
            talk.ask(f"without {name}: {type(request).__name__.removesuffix('Request')}", request)
        set_level(talk, name, highest[name])


@conversation(ApiKey.UPDATE_FEATURES, rounds=WITH_TYPES, alone=True)
def eligible_leaders_and_in_sync_replicas(talk: Talk) -> None:
    """Who is in sync must be the same for all brokers as soon as replicas can be eligible leaders."""

    def configure(broker: str, *changes: Change) -> None:
        (changed,) = talk.quietly(change((BROKER, broker, changes))).responses
        assert not changed.error_code, changed

    def look(when: str) -> None:
        talk.settle()
        for broker in ("", "1"):
            whose = "everybody's" if not broker else "the broker's"
            talk.ask(f"{whose} {when}", describe((BROKER, broker, [MIN_ISR]), synonyms=True))

    set_level(talk, ELR, 0, SAFE_DOWNGRADE)
    look("without")
    configure("", (MIN_ISR, DELETE, None))
    configure("1", (MIN_ISR, SET, "3"))
    look("as an operator has set it")
    talk.ask("validate", update((ELR, 1, UPGRADE), validate_only=True))
    look("after a look")
    talk.ask("up", update((ELR, 1, UPGRADE)))
    until_level(talk, ELR, 1)
    look("with")
