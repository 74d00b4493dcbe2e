"""Properties files as Java reads them, variables as Kafka's image reads them, overrides."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.config.definitions import ConfigError
from broker.config.sources import (
    OF_THE_IMAGE,
    gather,
    read_environment,
    read_override,
    read_properties,
    setting_of_variable,
)
from broker.logs import Level

GOLDEN = Path(__file__).parents[2] / "golden" / "configs" / "properties.json"
FILES: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("recorded", FILES, ids=lambda recorded: repr(recorded["file"])[:60])
def test_a_file_holds_what_java_reads_in_it(recorded: dict[str, Any]) -> None:
    data = recorded["file"].encode("latin-1")
    if recorded["pairs"] is None:
        with pytest.raises(ConfigError, match="four hexadecimal digits"):
            read_properties(data)
    else:
        assert read_properties(data) == recorded["pairs"]


@given(st.binary())
def test_any_bytes_are_pairs_or_refused(data: bytes) -> None:
    try:
        pairs = read_properties(data)
    except ConfigError:
        return
    assert all(isinstance(text, str) for pair in pairs.items() for text in pair)


def test_half_a_character_does_not_stop_anything() -> None:
    assert read_properties(rb"a=\ud83d.") == {"a": "\N{REPLACEMENT CHARACTER}."}


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_NODE_ID", "node.id"),
        ("KAFKA_LISTENER_NAME_DOCKER__X_SSL_KEY___Y", "listener.name.docker_x.ssl.key-y"),
        ("KAFKA_A____B", "a-.b"),
        ("KAFKA_A_____B", "a-_b"),
        ("KAFKA_A______B", "a--b"),
        ("KAFKA_KAFKA_METRICS_REPORTERS", "kafka.metrics.reporters"),
        ("KAFKA_Mixed_Case", "mixed.case"),
        ("KAFKA_", ""),
    ],
)
def test_a_variable_names_what_it_names_in_kafkas_image(variable: str, name: str) -> None:
    assert setting_of_variable(variable) == name


def test_variables_that_name_no_setting_are_told_apart() -> None:
    settings, ignored = read_environment(
        {
            "PATH": "/bin",
            "CLUSTER_ID": "x",
            "kafka_node_id": "9",
            "KAFKA_NODE_ID": "3",
            "KAFKA_LISTENER_NAME_A_SSL_KEYSTORE_TYPE": "PEM",
            "KAFKA_PORT": "tcp://10.0.0.1:9092",
            "KAFKA_SERVICE_HOST": "10.0.0.1",
            "KAFKA_LEADER_REPLICATION_THROTTLED_RATE": "5",
            **dict.fromkeys(OF_THE_IMAGE, "x"),
        }
    )
    assert settings == {"node.id": "3", "listener.name.a.ssl.keystore.type": "PEM"}
    others = ["KAFKA_PORT", "KAFKA_SERVICE_HOST", "KAFKA_LEADER_REPLICATION_THROTTLED_RATE"]
    assert ignored == sorted([*OF_THE_IMAGE, *others])


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("a=b", ("a", "b")),
        ("a=", ("a", "")),
        ("a=b=c", ("a", "b=c")),
        (" a = b", ("a", " b")),
    ],
)
def test_an_override_is_a_name_and_a_value(text: str, pair: tuple[str, str]) -> None:
    assert read_override(text) == pair


@pytest.mark.parametrize("text", ["a", "", "=b", " =b"])
def test_an_override_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected name=value"):
        read_override(text)


def test_the_later_source_goes_before_the_earlier(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes(b"node.id=1\nnum.partitions=1\nlog.dirs=/file\n")
    environment = {
        "KAFKA_NUM_PARTITIONS": "2",
        "KAFKA_LOG_DIRS": "/variable",
        "KAFKA_PORT": "x",
        "KAFKA_CONFIG_PROVIDERS_ENV_CLASS": "y",
        "CLUSTER_ID": "c",
    }
    gathered = gather(str(file), environment, ["log.dirs=/override", "log.dirs=/last"])
    assert gathered.settings == {
        "node.id": "1",
        "num.partitions": "2",
        "log.dirs": "/last",
        "config.providers.env.class": "y",
    }
    assert gathered.cluster_id == "c"
    assert gathered.remarks == ["environment variables that name no setting, ignored: KAFKA_PORT"]


def test_nothing_given_is_nothing_said() -> None:
    assert gather(None, {}, []) == ({}, None, [], {})


def test_levels_come_from_the_variables_of_kafkas_image() -> None:
    environment = {
        "KAFKA_LOG4J_ROOT_LOGLEVEL": "warn",
        "KAFKA_LOG4J_LOGGERS": "kafka.request.logger=DEBUG, kafka.nobody=INFO,kafka=LOUD,kafka.server=TRACE",
    }
    gathered = gather(None, environment, [])
    assert gathered.levels == {
        "root": Level.WARN,
        "kafka.request.logger": Level.DEBUG,
        "kafka.server": Level.TRACE,
    }
    (remark,) = gathered.remarks
    assert remark == "no logger or no level of this broker, ignored: kafka.nobody=INFO, kafka=LOUD"
    assert gathered.settings == {}


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*nope: No such file"):
        gather(str(tmp_path / "nope"), {}, [])
