"""Changes of a running broker's settings.  Most rules and all texts are tried in the recorded transcript."""

import json
from pathlib import Path

import pytest

from broker.config.alterations import check_alteration
from broker.config.broker_config import BrokerConfig
from broker.config.definitions import ConfigError, Scope, Update, definitions
from compat.oracle.kafka import SMALL_NODE
from protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.broker.config.one_node import STATIC, OneNode
from tests.golden.configs.alterable import asked_about_all


def refusal(texts: dict[str, str], *, for_this_broker: bool = True) -> str | None:
    try:
        check_alteration(BrokerConfig(STATIC), texts, for_this_broker=for_this_broker)
    except ConfigError as error:
        return error.wire_message
    return None


def test_only_what_kafka_can_change_while_it_runs_can_be_changed() -> None:
    for known in definitions(Scope.BROKER):
        text = STATIC.get(known.name, known.default_text)
        if text is None or known.type_name == "CLASS" or known.name == "listener.security.protocol.map":
            continue  # there is no value to set, or none that fits the listeners
        alone, everybody = refusal({known.name: text}), refusal({known.name: text}, for_this_broker=False)
        if known.update is Update.READ_ONLY:
            assert alone == everybody == f"Cannot update these configs dynamically: [{known.name}]"
        elif known.name.startswith("ssl.") and alone is not None:
            assert "only per-listener using the listener prefix" in alone, known.name
        else:
            assert alone is None, known.name
            if known.update is Update.PER_BROKER:
                assert everybody is not None, known.name
                assert "broker id must be specified" in everybody, known.name
            else:
                assert everybody is None, known.name


def test_listeners_stay_where_they_are() -> None:
    told = refusal({"listeners": "PLAINTEXT://127.0.0.1:9999,CONTROLLER://127.0.0.1:9093"})
    assert told == "listeners cannot be changed while this broker runs"


def test_the_other_layer_counts_when_settings_must_fit_together() -> None:
    config = BrokerConfig(STATIC)
    config.apply_dynamic({}, {"log.retention.ms": "1000"})
    with pytest.raises(ConfigError, match="property value: 1000"):
        check_alteration(config, {"log.local.retention.ms": "2000"}, for_this_broker=False)


@pytest.mark.parametrize("threads", ["4", "8", "16"])
def test_threads_may_be_halved_and_doubled(threads: str) -> None:
    assert refusal({"num.io.threads": threads}) is None


def test_local_retention_may_not_be_unlimited_while_the_whole_is_not() -> None:
    told = refusal({"log.local.retention.ms": "-1"})
    assert told is not None
    assert "Value must not be -1 as log.retention.ms value is set as 604800000." in told


ALTERABLE = Path(__file__).parents[2] / "golden" / "configs" / "alterable.json"

NOT_KAFKAS_ANSWERS = {
    # Kafka fails for want of a default.
    "controller.listener.names": ("-1", "42 Cannot update these configs dynamically: [{name}]"),
    "process.roles": ("-1", "42 Cannot update these configs dynamically: [{name}]"),
    # Java's words about the colon that is missing.
    **dict.fromkeys(
        ("listener.security.protocol.map", "max.connections.per.ip.overrides"),
        ("begin 0, end -1, length 4", "'true' is not of the form name:value"),
    ),
}
"""Where others say what is the matter."""


def test_what_may_be_altered_while_a_broker_runs_and_for_whom() -> None:
    """Every setting, for this broker and for all, with and without a listener's name, set and appended to."""
    node = OneNode(SMALL_NODE)

    def ask(request: IncrementalAlterConfigsRequest) -> tuple[int, str | None]:
        (answer,) = node.ask(request, 1).responses
        return answer.error_code, answer.error_message

    expected = {
        name: outcome.replace(*NOT_KAFKAS_ANSWERS.get(name, ("", "")))
        for outcome, names in json.loads(ALTERABLE.read_text(encoding="utf-8")).items()
        for name in names
    }
    found = {name: outcome for outcome, names in asked_about_all(ask).items() for name in names}
    assert {name: found[name] for name in found if found[name] != expected[name]} == {}
    assert found.keys() == expected.keys()
