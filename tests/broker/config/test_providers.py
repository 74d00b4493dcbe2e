"""Settings whose values stand elsewhere, as Kafka's three providers find them."""

from pathlib import Path

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.checks import remarks
from broker.config.providers import resolve
from broker.config.value_types import ConfigError

PACKAGE = "org.apache.kafka.common.config.provider"
ALL = {
    "config.providers": "env,file,dir",
    "config.providers.env.class": f"{PACKAGE}.EnvVarConfigProvider",
    "config.providers.file.class": f"{PACKAGE}.FileConfigProvider",
    "config.providers.dir.class": f"{PACKAGE}.DirectoryConfigProvider",
}


VAULT = (
    "Invalid value com.acme.Vault for configuration config.providers.v.class: "
    "Could not load config provider class or one of its dependencies"
)


def resolved(text: str, environment: dict[str, str] | None = None, **more: str) -> str:
    parameters = {f"config.providers.{name.replace('__', '.')}": value for name, value in more.items()}
    return resolve({**ALL, **parameters, "x": text}, environment or {})["x"]


@pytest.mark.acts("config.providers")
def test_a_broker_takes_values_from_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTITIONS", "7")
    config = BrokerConfig({**ALL, "num.partitions": "${env:PARTITIONS}"})
    assert config.get("num.partitions") == 7
    assert config.static["num.partitions"] == "7"
    assert remarks(config) == []


def test_variables_may_stand_anywhere_and_several_times() -> None:
    environment = {"HOST": "here", "PORT": "9092"}
    assert (
        resolved("P://${env:HOST}:${env:PORT},Q://${env:HOST}:1", environment) == "P://here:9092,Q://here:1"
    )


@pytest.mark.parametrize(
    "text", ["${env:NOT_THERE}", "${vault:a:b}", "${env}", "$env:HOST", "${file::key}", "${dir::key}", "${"]
)
def test_what_nobody_knows_stays(text: str) -> None:
    assert resolved(text, {"HOST": "here"}) == text


def test_only_variables_that_are_allowed() -> None:
    environment = {"OTTLA_A": "1", "B": "2"}
    text = resolved("${env:OTTLA_A} ${env:B}", environment, env__param__allowlist__pattern="OTTLA_.*")
    assert text == "1 ${env:B}"


def test_properties_files_and_files_by_themselves(tmp_path: Path) -> None:
    (tmp_path / "secrets.properties").write_text("a.b = ü \\\n  more\nc:", encoding="utf-8")
    (tmp_path / "alone").write_text("line\n", encoding="utf-8")
    assert resolved(f"${{file:{tmp_path}/secrets.properties:a.b}}") == "ü more"
    assert resolved(f"${{file:{tmp_path}/secrets.properties:c}}.") == "."
    assert resolved(f"${{dir:{tmp_path}:alone}}") == "line\n"
    for unknown in (
        f"${{file:{tmp_path}/secrets.properties:z}}",
        f"${{dir:{tmp_path}:z}}",
        "${dir:/no/where:z}",
    ):
        assert resolved(unknown) == unknown


def test_only_paths_that_are_allowed(tmp_path: Path) -> None:
    for folder in ("open", "closed"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f").write_text("key=value", encoding="utf-8")
    (tmp_path / "open" / "link").symlink_to(tmp_path / "closed" / "f")
    for path, is_allowed in (
        ("open/f", True),
        ("closed/f", False),
        ("open/../closed/f", False),
        ("open/link", False),
    ):
        text = f"${{file:{tmp_path}/{path}:key}}"
        found = resolved(text, file__param__allowed__paths=f"{tmp_path}/open")
        assert found == ("value" if is_allowed else text), path


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            {"config.providers": "v", "config.providers.v.class": "com.acme.Vault"},
            VAULT,
        ),
        (
            {**ALL, "x": "${env:path:key}"},
            "Path is not supported for EnvVarConfigProvider, invalid value 'path'",
        ),
        ({**ALL, "x": "${file:/no/such:key}"}, "Could not read properties from file /no/such"),
        ({**ALL, "x": "${file:/no\0such:key}"}, "Could not read properties from file /no\0such"),
        (
            {**ALL, "config.providers.env.param.allowlist.pattern": "("},
            (
                "Invalid value ( for configuration config.providers.env.param.allowlist.pattern: missing ), "
                "unterminated subpattern at position 0"
            ),
        ),
        ({**ALL, "config.providers.dir.param.allowed.paths": "a"}, "Path a is not absolute"),
        ({**ALL, "config.providers.dir.param.allowed.paths": "/no/such"}, "Path /no/such does not exist"),
    ],
)
def test_what_kafka_refuses_is_refused_in_its_words(settings: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig(settings)
    assert refused.value.message == text


def test_a_provider_without_a_class_is_none() -> None:
    assert resolve({"config.providers": "env", "x": "${env:HOST}"}, {"HOST": "here"})["x"] == "${env:HOST}"
