"""IncrementalAlterConfigs.  What is refused, and in which words, stands in the recorded transcript."""

import pytest

from broker.controller.settings import Alteration
from broker.logs import LOGGERS, Level
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from protocol.stored.metadata_records import ConfigRecord
from tests.broker.config.one_node import OneNode
from tests.golden.configs.steps import DELETE, GROUP, LOGGER, SET, TOPIC, change, describe


@pytest.mark.parametrize("version", IncrementalAlterConfigsRequest.versions)
def test_every_version_alters_what_it_is_told_to(version: int) -> None:
    node = OneNode()
    answer = node.ask(change((TOPIC, "t1", [("segment.ms", SET, "5")])), version)
    assert [(r.error_code, r.error_message) for r in answer.responses] == [(0, None)]
    assert node.written == [ConfigRecord(resource_type=2, resource_name="t1", name="segment.ms", value="5")]
    assert node.image.topic_config("t1") == {"segment.ms": "5"}


def test_a_logger_has_the_level_above_it_when_it_loses_its_own() -> None:
    node = OneNode()
    for name, operation, value in (
        ("kafka.network", SET, "ERROR"),
        ("kafka", SET, "DEBUG"),
        ("kafka.network", DELETE, None),
        ("kafka.server", DELETE, None),
    ):
        answer = node.ask(change((LOGGER, "1", [(name, operation, value)])), 1)
        assert answer.responses[0].error_code == 0
    described = node.ask(describe((LOGGER, "1", None)), 4).results[0].configs
    levels = {config.name: config.value for config in described}
    assert tuple(levels) == LOGGERS
    assert {levels[name] for name in ("kafka", "kafka.network", "kafka.server")} == {"DEBUG"}
    assert [levels[name] for name in ("root", "org.apache.kafka", "kafka.request.logger")] == [
        "INFO",
        "INFO",
        "WARN",
    ]


def test_only_to_validate_a_level_changes_none() -> None:
    node = OneNode()
    node.ask(change((LOGGER, "1", [("kafka", SET, "ERROR")]), validate_only=True), 1)
    assert node.log.levels()["kafka"] is Level.INFO


def test_answers_keep_the_order_of_what_was_asked() -> None:
    answer = OneNode().ask(
        change(
            (99, "a", []),
            (TOPIC, "t1", [("segment.ms", SET, "5")]),
            (LOGGER, "1", [("root", SET, "WARN")]),
            (TOPIC, "nope", [("segment.ms", SET, "5")]),
            (GROUP, "", []),
        ),
        1,
    )
    assert [(r.resource_type, r.resource_name, r.error_code) for r in answer.responses] == [
        (99, "a", 42),
        (TOPIC, "t1", 0),
        (LOGGER, "1", 0),
        (TOPIC, "nope", 3),
        (GROUP, "", 42),
    ]


def test_the_controller_is_not_asked_about_loggers() -> None:
    node = OneNode()
    node.controller = None  # type: ignore[assignment]
    answer = node.ask(change((LOGGER, "1", [("root", SET, "TRACE")]), (99, "x", [])), 1)
    assert [r.error_code for r in answer.responses] == [0, 42]
    assert node.log.level is Level.TRACE


@pytest.mark.acts("request.timeout.ms")
def test_a_controller_that_does_not_decide_is_reported_for_what_it_was_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_late(*_: object, **__: object) -> None:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)

    monkeypatch.setattr("broker.apis.altering_configs.alter_settings", too_late)
    node = OneNode()
    answer = node.ask(change((TOPIC, "t1", [("segment.ms", SET, "5")]), (99, "x", [])), 1)
    assert [(r.error_code) for r in answer.responses] == [7, 42]
    assert node.timeout_ms == node.config.get("request.timeout.ms")


def test_a_refusal_that_quotes_a_long_value_still_fits_its_field() -> None:
    answer = OneNode().ask(change((TOPIC, "t1", [("retention.ms", SET, "ü" * 16_000)])), 1)
    (told,) = answer.responses
    assert told.error_code == ErrorCode.INVALID_CONFIG
    assert told.error_message.startswith("Invalid value üü")


def test_removing_settings_leaves_no_resource_behind() -> None:
    node = OneNode()
    node.ask(change((GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")])), 1)
    node.ask(change((GROUP, "g", [("consumer.session.timeout.ms", DELETE, None)])), 1)
    assert (GROUP, "g") not in node.image.configs


def test_an_alteration_is_complete_only_when_it_says_so() -> None:
    assert not Alteration(TOPIC, "t1", []).is_complete
