"""Every setting: its default, the values it takes, and Kafka's words for those it does not."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.config.definitions import (
    OTTLA_DEFAULTS,
    ConfigError,
    Definition,
    Scope,
    Update,
    definition,
    definitions,
    find,
    names,
)
from broker.config.value_types import TYPE_NUMBERS

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "configs"

ALL = [known for scope in Scope for known in definitions(scope)]


def full_name(known: Definition) -> str:
    return f"{known.scope.value}/{known.name}"


def recorded_values() -> Iterator[tuple[str, dict[str, list[str | None]]]]:
    """Each setting with Kafka's outcomes and the values that have them."""
    for group in json.loads((GOLDEN / "values.json").read_text(encoding="utf-8")):
        for setting in group["settings"]:
            yield setting, group["outcomes"]


VALUES = dict(recorded_values())

NOT_KAFKAS_WORDS: dict[tuple[str, str | None], str] = {
    ("broker/controller.quorum.bootstrap.servers", "localhost:99999"): (
        "! Invalid value localhost:99999 for configuration controller.quorum.bootstrap.servers: "
        "port out of range:99999"
    ),
    **{
        (f"topic/{side}.replication.throttled.replicas", None): (
            f"! Invalid value null for configuration {side}.replication.throttled.replicas: "
            f"{side}.replication.throttled.replicas must be the literal '*' or a list of replicas in the "
            "following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )
        for side in ("leader", "follower")
    },
}
"""Where Kafka fails with an exception that does not name the setting."""


def outcome(known: Definition, text: str | None) -> str:
    try:
        value = known.parse(text)
    except ConfigError as error:
        return f"! {error.message}"
    return "=null" if value is None else f"= {known.show(value)}"


def expectations() -> Iterator[tuple[str, str | None, str]]:
    """Each setting with a value of the recording and the outcome that this has in Kafka."""
    for setting, outcomes in VALUES.items():
        for template, texts in outcomes.items():
            for text in texts:
                name = setting.partition("/")[2]
                expected = template.replace("{name}", name).replace("{value}", text or "")
                yield setting, text, NOT_KAFKAS_WORDS.get((setting, text), expected)


def test_values_have_the_outcomes_they_have_in_kafka() -> None:
    wrong = []
    for setting, text, expected in expectations():
        scope, _, name = setting.partition("/")
        known = definition(Scope(scope), name)
        found, shown = outcome(known, text), text or ""
        # Some of Kafka's texts show the value without the blanks around it.
        if found not in (expected, expected.replace(shown or "\0", shown.strip())):
            wrong.append((setting, text, found, expected))
    assert wrong == []


def test_the_recording_knows_the_settings_that_are_known_here() -> None:
    ours = {full_name(known) for known in ALL if known.scope is not Scope.QUOTA and not known.is_dynamic_only}
    assert ours == set(VALUES)


def test_a_default_is_valid_and_is_what_its_text_says() -> None:
    for known in ALL:
        if known.default_text is None:
            assert known.default is None, full_name(known)
        else:
            assert known.parse(known.default_text) == known.default, full_name(known)
            assert known.parse(known.show(known.default)) == known.default, full_name(known)


def test_a_type_has_kafkas_number() -> None:
    for known in ALL:
        assert known.type_number == TYPE_NUMBERS[known.type_name], full_name(known)
        assert known.is_sensitive == (known.type_name == "PASSWORD"), full_name(known)
        assert known.is_list == (known.type_name == "LIST"), full_name(known)


def test_synonyms_are_broker_settings() -> None:
    for known in ALL:
        for name, factor in known.synonyms:
            assert find(Scope.BROKER, name) is not None, full_name(known)
            assert factor >= 1, full_name(known)


@pytest.mark.parametrize("scope", Scope)
def test_names_are_sorted_and_come_once(scope: Scope) -> None:
    assert list(names(scope)) == sorted(set(names(scope)))


def test_a_setting_only_for_running_brokers_can_be_changed() -> None:
    for known in definitions(Scope.BROKER):
        if known.is_dynamic_only:
            assert known.update is not Update.READ_ONLY, full_name(known)


def test_an_unknown_name_is_none() -> None:
    assert find(Scope.TOPIC, "nope") is None
    with pytest.raises(KeyError, match="Kafka has no topic setting nope"):
        definition(Scope.TOPIC, "nope")


def test_the_defaults_that_are_ours() -> None:
    for name, text in OTTLA_DEFAULTS.items():
        assert definition(Scope.BROKER, name).default_text == text


# Which settings have an effect.


def sources() -> str:
    """All code but that which only tells what settings are."""
    about_settings = {
        "alterations",
        "checks",
        "definitions",
        "documentation",
        "layers",
        "resources",
        "tables",
    }
    paths = [
        path
        for layer in ("broker", "storage", "ottla")
        for path in (ROOT / layer).rglob("*.py")
        if not (path.parent == ROOT / "broker" / "config" and path.stem in about_settings)
    ]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def test_a_setting_that_the_broker_reads_is_marked_as_heeded() -> None:
    read = set(re.findall(r"""(?:\.get|\bget|is_set|_if_set)\((?:config, )?"([a-z.]+)"\)""", sources()))
    known_here = {known.name: known for known in definitions(Scope.BROKER)}
    assert {name for name in read & known_here.keys() if not known_here[name].is_heeded} == set()
