import random

from broker.coordination.timers import Timers


def test_keys_are_due_in_the_order_of_their_moments() -> None:
    timers: Timers[str] = Timers()
    timers.wake_by("late", 30)
    timers.wake_by("early", 10)
    timers.wake_by("between", 20)
    assert timers.earliest_ms() == 10
    assert timers.take_due(9) is None
    assert [timers.take_due(25), timers.take_due(25), timers.take_due(25)] == ["early", "between", None]
    assert timers.earliest_ms() == 30


def test_a_key_is_woken_at_the_earliest_moment_it_asked_for_and_only_then() -> None:
    timers: Timers[str] = Timers()
    timers.wake_by("key", 30)
    timers.wake_by("key", 10)
    timers.wake_by("key", 20)
    assert timers.take_due(10) == "key"
    assert timers.take_due(100) is None
    assert timers.earliest_ms() is None


def test_a_forgotten_key_is_not_woken() -> None:
    timers: Timers[str] = Timers()
    timers.wake_by("gone", 10)
    timers.wake_by("stays", 20)
    timers.forget("gone")
    timers.forget("never there")
    assert timers.earliest_ms() == 20
    assert timers.take_due(50) == "stays"
    assert len(timers) == 0


def test_keys_that_cannot_be_compared_may_be_due_at_once() -> None:
    timers: Timers[object] = Timers()
    first, second = object(), object()
    timers.wake_by(first, 10)
    timers.wake_by(second, 10)
    assert [timers.take_due(10), timers.take_due(10)] == [first, second]


def test_against_a_plain_dictionary(chance: random.Random) -> None:
    timers: Timers[int] = Timers()
    plain: dict[int, int] = {}
    for _ in range(2000):
        key, moment = chance.randrange(20), chance.randrange(1000)
        match chance.randrange(4):
            case 0 | 1:
                timers.wake_by(key, moment)
                plain[key] = min(moment, plain.get(key, moment))
            case 2:
                timers.forget(key)
                plain.pop(key, None)
            case _:
                taken = timers.take_due(moment)
                due = [k for k, wake in plain.items() if wake <= moment]
                if taken is None:
                    assert not due
                else:
                    assert plain[taken] == min(plain.values())
                    del plain[taken]
        assert timers.earliest_ms() == min(plain.values(), default=None)
