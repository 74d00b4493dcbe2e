"""Regular expressions that the broker looks up for members (KIP-848): RE2's, matched against whole names."""

import pytest

from broker.config.broker_config import BrokerConfig
from broker.groups.heartbeats import REGEX_REFRESH_INTERVAL_MIN_MS
from broker.groups.regular_expressions import check, resolve
from broker.groups.settings import GroupSettings
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from tests.broker.groups.consumer_rooms import INTERVAL_MS, ConsumerRoom


@pytest.fixture
def room() -> ConsumerRoom:
    room = ConsumerRoom()
    for name in ("logs.a", "logs.b", "other"):
        room.create_topic(name, 2)
    return room


def join_by(room: ConsumerRoom, member_id: str, regex: str, **how: object) -> None:
    room.entered(member_id, None, regex=regex, **how)


def test_the_first_answer_knows_nothing_yet(room: ConsumerRoom) -> None:
    first = room.entered("a", None, regex=r"logs\..*")
    assert (first.member_epoch, first.assignment) == (1, {})
    assert room.consumers.group_epoch == 2
    assert room.named(room.beat("a", 1).assignment) == {"logs.a": [0, 1], "logs.b": [0, 1]}


def test_whole_names_are_matched(room: ConsumerRoom) -> None:
    join_by(room, "a", "logs")
    assert room.consumers.regexes["logs"].topics == set()
    assert room.consumers.group_epoch == 1


def test_new_topics_are_found_with_the_next_refresh(room: ConsumerRoom) -> None:
    join_by(room, "a", "logs.*")
    room.beat("a", 1)
    room.create_topic("logs.c", 1)
    room.beat("a", 2)
    assert room.consumers.regexes["logs.*"].topics == {"logs.a", "logs.b"}
    room.pass_ms(REGEX_REFRESH_INTERVAL_MIN_MS + 1)
    room.beat("a", 2)
    assert room.consumers.regexes["logs.*"].topics == {"logs.a", "logs.b", "logs.c"}
    assert room.named(room.beat("a", 2).assignment) == {"logs.a": [0, 1], "logs.b": [0, 1], "logs.c": [0]}


def test_nothing_is_looked_up_again_for_nothing(room: ConsumerRoom) -> None:
    join_by(room, "a", "logs.*")
    room.beat("a", 1)
    room.pass_ms(REGEX_REFRESH_INTERVAL_MIN_MS + 1)
    end = room.log.log_end
    room.beat("a", 2)
    assert room.log.log_end == end
    for _ in range(21):
        room.pass_ms(30_000)
        room.beat("a", 2)
    assert room.log.log_end == end + 1, "once in ten minutes, all the same"


@pytest.mark.acts("group.consumer.regex.refresh.interval.ms")
def test_how_often_an_expression_is_looked_up_again_can_be_set() -> None:
    config = BrokerConfig({"group.consumer.regex.refresh.interval.ms": "20000"})
    room = ConsumerRoom(GroupSettings.from_config(config))
    room.create_topic("logs.a", 2)
    join_by(room, "a", "logs.*")
    room.beat("a", 1)
    end = room.log.log_end
    for seconds, written in ((19, 0), (2, 1)):
        room.pass_ms(seconds * 1000)
        room.beat("a", 2)
        assert room.log.log_end == end + written


def test_a_second_member_with_a_known_expression_is_assigned_at_once(room: ConsumerRoom) -> None:
    join_by(room, "a", "logs.*")
    room.beat("a", 1)
    room.pass_ms(INTERVAL_MS)
    second = room.entered("b", None, regex="logs.*")
    assert second.member_epoch == 3
    room.settle("a", "b")
    assert sum(len(of) for owned in room.owned("a", "b") for of in (owned or {}).values()) == 4


def test_an_expression_that_nobody_uses_is_forgotten(room: ConsumerRoom) -> None:
    join_by(room, "a", "logs.*")
    join_by(room, "b", "logs.*")
    room.beat("a", -1)
    assert list(room.consumers.regexes) == ["logs.*"]
    room.beat("b", room.member("b").member_epoch, regex="", topics=["other"])
    assert room.consumers.regexes == {}
    assert room.consumers.subscriptions.topics() == {"other"}


def test_names_and_expressions_add_up(room: ConsumerRoom) -> None:
    room.entered("a", ["other"], regex="logs.a")
    room.pass_ms(INTERVAL_MS)
    room.beat("a", 2)
    assert room.owned("a") == [{"other": [0, 1], "logs.a": [0, 1]}]


def test_a_deleted_topic_is_lost_before_the_expression_is_looked_up_again(room: ConsumerRoom) -> None:
    join_by(room, "a", "logs.*")
    room.beat("a", 1)
    room.pass_ms(INTERVAL_MS)
    room.delete_topic("logs.a")
    assert room.named(room.beat("a", 2).assignment) == {"logs.b": [0, 1]}


def test_what_is_no_expression_is_refused_and_changes_nothing(room: ConsumerRoom) -> None:
    refused = room.enter("a", None, regex="(")
    assert (refused.error, refused.message) == (
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        "SubscribedTopicRegex `(` is not a valid regular expression: missing closing ).",
    )
    assert room.machine.groups == {}


async def test_expressions_are_there_after_loading(room: ConsumerRoom) -> None:
    join_by(room, "a", "logs.*")
    room.beat("a", 1)
    again = await room.restarted()
    assert again.consumers.regexes == room.consumers.regexes
    assert again.consumers.subscriptions.topics() == {"logs.a", "logs.b"}


@pytest.mark.parametrize("pattern", ["(?=a)", r"\1", "a**", "[", "*"])
def test_what_re2_does_not_know(pattern: str) -> None:
    with pytest.raises(KafkaError) as fault:
        check(pattern)
    assert fault.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_an_expression_of_another_re2_matches_nothing_here() -> None:
    assert resolve(["(", "a+"], ["a", "aa", "ab"]) == {"(": frozenset(), "a+": {"a", "aa"}}
