"""The broker follows what the metadata says of its settings."""

from protocol.stored.metadata_records import ConfigRecord
from tests.broker.config.one_node import OneNode


def setting(broker: str, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=4, resource_name=broker, name=name, value=value)


def test_a_committed_setting_holds_at_once() -> None:
    node = OneNode()
    node.apply(setting("", "log.segment.bytes", "2000000"))
    assert node.config.get("log.segment.bytes") == 2_000_000
    node.apply(setting("1", "log.segment.bytes", "3000000"), setting("2", "log.segment.bytes", "4000000"))
    assert node.config.get("log.segment.bytes") == 3_000_000
    node.apply(setting("1", "log.segment.bytes", None), setting("", "log.segment.bytes", None))
    assert node.config.get("log.segment.bytes") == 1 << 30


def test_the_log_says_what_does_not_hold_and_what_does_nothing() -> None:
    node = OneNode()
    node.apply(setting("", "log.dirs", "/x"), setting("", "num.io.threads", "9"))
    lines = node.lines.getvalue().splitlines()
    assert any("WARN  the dynamic setting log.dirs is ignored" in line for line in lines)
    assert any("INFO  the dynamic setting num.io.threads has no effect" in line for line in lines)


def test_other_changes_are_none_of_its_business() -> None:
    node = OneNode()
    before = node.config.topic({})
    node.apply(ConfigRecord(resource_type=2, resource_name="t1", name="segment.ms", value="5"))
    assert node.config.topic({}) is before
