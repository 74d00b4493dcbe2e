import pytest
import trio

from broker.network.waiting import Waiting


def test_it_begins_without_an_answer() -> None:
    waiting: Waiting[str] = Waiting()
    assert not waiting.is_answered
    assert not waiting.is_abandoned


def test_the_first_answer_wins() -> None:
    waiting: Waiting[str] = Waiting()
    waiting.answer("first")
    waiting.answer("second")
    waiting.answer_with(lambda: "third")
    waiting.fail(ValueError())
    assert waiting.is_answered
    assert waiting.result() == "first"


def test_an_answer_may_be_built_when_it_is_needed() -> None:
    built = []

    def build() -> str:
        built.append(1)
        return "late"

    waiting: Waiting[str] = Waiting()
    waiting.answer_with(build)
    assert waiting.is_answered
    assert not built
    assert [waiting.result(), waiting.result()] == ["late", "late"]
    assert built == [1]


def test_a_failure_is_raised_where_the_answer_is_asked_for() -> None:
    waiting: Waiting[str] = Waiting()
    waiting.fail(KeyError("lost"))
    waiting.answer("too late")
    with pytest.raises(KeyError, match="lost"):
        waiting.result()


def test_asking_too_early_is_a_mistake() -> None:
    with pytest.raises(RuntimeError):
        Waiting[str]().result()


def test_a_deadline_needs_somebody_who_answers() -> None:
    with pytest.raises(ValueError, match="deadline"):
        Waiting[str](deadline=1.0)


def test_notice_is_given_once_in_the_moment_of_the_answer() -> None:
    noticed: list[str] = []
    waiting: Waiting[str] = Waiting()
    waiting.notify(lambda: noticed.append(waiting.result()))
    waiting.answer("now")
    waiting.answer("again")
    assert noticed == ["now"]


def test_expiry_calls_for_an_answer_only_while_it_is_missing() -> None:
    calls = []
    waiting: Waiting[str] = Waiting(5.0, lambda: calls.append(1))
    waiting.expire()
    assert calls == [1]
    waiting.answer("done")
    waiting.expire()
    abandoned: Waiting[str] = Waiting(5.0, lambda: calls.append(2))
    abandoned.abandon()
    abandoned.expire()
    assert calls == [1]


def test_release_ends_exclusiveness_and_gives_notice() -> None:
    noticed = []
    waiting: Waiting[str] = Waiting(exclusive=True)
    waiting.notify(lambda: noticed.append(waiting.is_answered))
    waiting.release()
    waiting.release()
    assert not waiting.exclusive
    waiting.answer("done")
    assert noticed == [False, True]


def test_who_waits_is_told_when_the_connection_is_gone() -> None:
    told = []
    waiting: Waiting[str] = Waiting()
    waiting.on_abandoned(lambda: told.append(1))
    waiting.on_abandoned(lambda: told.append(2))
    waiting.abandon()
    waiting.abandon()
    assert waiting.is_abandoned
    assert told == [1, 2]
    waiting.on_abandoned(lambda: told.append(3))
    assert told == [1, 2, 3]


def test_an_answered_request_cannot_be_abandoned() -> None:
    told = []
    waiting: Waiting[str] = Waiting()
    waiting.on_abandoned(lambda: told.append(1))
    waiting.answer("done")
    waiting.abandon()
    assert not waiting.is_abandoned
    assert told == []


async def test_tasks_can_wait_too(autojump_clock: trio.testing.MockClock) -> None:
    waiting: Waiting[str] = Waiting()

    async def answer_later() -> None:
        await trio.sleep(3)
        waiting.answer("at last")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer_later)
        assert await waiting.wait() == "at last"
    assert await waiting.wait() == "at last"


def test_it_says_what_it_is() -> None:
    waiting: Waiting[str] = Waiting()
    assert "open" in repr(waiting)
    waiting.answer("x")
    assert "answered" in repr(waiting)
