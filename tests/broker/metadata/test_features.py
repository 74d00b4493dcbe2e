"""Feature levels, as ``kafka-storage version-mapping`` and ``format`` of 4.4.0 give them."""

import pytest

from broker.metadata.features import (
    METADATA_VERSION_NAMES,
    UnknownFeature,
    default_levels,
    levels_to_format,
    metadata_version_of_release,
    register_broker_version,
    writes_cordoned_directories,
)

MAPPING = [
    # level, name, transaction, group, eligible.leader.replicas, share, streams
    (25, "4.0-IV3", 2, 1, 0, 0, 0),
    (26, "4.1-IV0", 2, 1, 1, 0, 0),
    (27, "4.1-IV1", 2, 1, 1, 0, 0),
    (28, "4.2-IV0", 2, 1, 1, 1, 0),
    (29, "4.2-IV1", 2, 1, 1, 1, 1),
    (30, "4.3-IV0", 2, 1, 1, 1, 1),
    (31, "4.4-IV0", 2, 1, 1, 2, 1),
    (32, "4.4-IV1", 2, 1, 1, 2, 1),
    (33, "4.4-IV2", 2, 1, 1, 2, 1),
]


@pytest.mark.parametrize(("level", "name", "transaction", "group", "elr", "share", "streams"), MAPPING)
def test_the_mapping(
    level: int, name: str, transaction: int, group: int, elr: int, share: int, streams: int
) -> None:
    levels = default_levels(level)
    assert METADATA_VERSION_NAMES[level] == name
    assert metadata_version_of_release(name) == level
    assert levels.pop("metadata.version") == level
    assert levels == {
        feature: value
        for feature, value in {
            "transaction.version": transaction,
            "group.version": group,
            "eligible.leader.replicas.version": elr,
            "share.version": share,
            "streams.version": streams,
        }.items()
        if value
    }


@pytest.mark.parametrize(
    ("release", "level"), [("4.0", 25), ("4.1", 27), ("4.2", 29), ("4.3", 30), ("4.4", 33)]
)
def test_a_release_is_its_last_level(release: str, level: int) -> None:
    assert metadata_version_of_release(release) == level


@pytest.mark.parametrize("text", ["4.5", "3.9", "4", "4.4-IV3", "", "bogus"])
def test_unknown_releases(text: str) -> None:
    with pytest.raises(UnknownFeature, match=r"Unknown metadata\.version '.*'\. Supported .* 4\.4-IV2$"):
        metadata_version_of_release(text)


class TestChosenLevels:
    def test_the_order_of_the_log(self) -> None:
        assert list(levels_to_format(33, {})) == [
            "metadata.version",
            "eligible.leader.replicas.version",
            "group.version",
            "share.version",
            "streams.version",
            "transaction.version",
        ]

    def test_a_level_of_0_is_not_written(self) -> None:
        levels = levels_to_format(33, {"group.version": 0, "streams.version": 0})
        assert "group.version" not in levels
        assert "streams.version" not in levels

    def test_a_level_above_the_release_s_own(self) -> None:
        assert levels_to_format(25, {"share.version": 2}) == {
            "metadata.version": 25,
            "group.version": 1,
            "share.version": 2,
            "transaction.version": 2,
        }

    def test_unknown_features(self) -> None:
        with pytest.raises(UnknownFeature) as raised:
            levels_to_format(33, {"bogus": 1})
        assert str(raised.value) == (
            "Unsupported feature: bogus. Supported features are: eligible.leader.replicas.version, "
            "group.version, kraft.version, share.version, streams.version, transaction.version"
        )

    @pytest.mark.parametrize("level", [-1, 2])
    def test_unknown_levels(self, level: int) -> None:
        with pytest.raises(UnknownFeature, match=f"No feature:group.version with feature level {level}"):
            levels_to_format(33, {"group.version": level})


def test_record_versions_by_level() -> None:
    assert [register_broker_version(level) for level in (25, 29, 30, 33)] == [3, 3, 4, 4]
    assert [writes_cordoned_directories(level) for level in (29, 30)] == [False, True]
