"""Connections, counted by hand.  What listeners do with it stands in ``tests/broker/network``."""

from broker.quotas.connections import AddressLimits, ConnectionLimits, ConnectionQuotas, ListenerLimits
from broker.quotas.rates import Windows

WINDOWS = Windows(11, 1000)


def quotas(**limits: object) -> ConnectionQuotas:
    return ConnectionQuotas(ConnectionLimits(**limits), WINDOWS)  # type: ignore[arg-type]


def test_nobody_waits_for_longer_than_a_window() -> None:
    door = quotas(rate_max=1)
    assert [door.knock("A", 0) for _ in range(12)] == [0] * 10 + [1000] * 2


def test_a_broker_that_lets_nobody_in_says_so_with_every_window() -> None:
    assert [quotas(rate_max=0).knock("A", 0) for _ in range(3)] == [1000] * 3


def test_the_rate_of_the_broker_is_that_of_all_listeners_but_the_protected_one() -> None:
    door = quotas(rate_max=1, protected="B")
    assert [door.knock("B", 0) for _ in range(20)] == [0] * 20
    assert [door.knock("A", 0) for _ in range(5)] + [door.knock("C", 0) for _ in range(6)] == [
        *[0] * 10,
        1000,
    ]


def test_a_listener_has_a_rate_of_its_own() -> None:
    door = quotas(listeners={"B": ListenerLimits(rate_max=1)}, protected="B")
    assert [door.knock("B", 0) for _ in range(11)] == [*[0] * 10, 1000]
    assert door.knock("A", 0) == 0


def test_an_address_that_is_refused_does_not_count() -> None:
    door = quotas(rate_max=1)
    door.apply_addresses(AddressLimits([("10.0.0.7", 1), (None, 5)]))
    for _ in range(10):
        assert door.knock("A", 0) == 0
        assert door.refuse("A", "10.0.0.7", 0) == 0
    for _ in range(3):
        assert door.knock("A", 0) == 1000
        assert door.refuse("A", "10.0.0.7", 0) == 1000
    assert door.refuse("A", "10.0.0.8", 0) == 0


def test_addresses_have_a_default_and_may_be_exempt_from_it() -> None:
    limits = AddressLimits([(None, 5), ("10.0.0.7", 2**31 - 1)])
    assert limits.limit(limits.holder("10.0.0.8", "")) == 5
    assert limits.limit(limits.holder("10.0.0.7", "")) is None
    assert limits.limit(limits.holder("10.0.0.8", "")) == 5
    assert AddressLimits().limit(limits.holder("10.0.0.8", "")) is None


def test_room_is_that_of_the_broker_and_of_the_listener() -> None:
    door = quotas(
        connections_max=2, listeners={"A": ListenerLimits(1), "P": ListenerLimits(2)}, protected="P"
    )
    door.enter("A", "h")
    assert [door.has_room(listener) for listener in "ABP"] == [False, True, True]
    door.enter("B", "h")
    assert [door.has_room(listener) for listener in "ABP"] == [False, False, True]
    door.enter("P", "h")
    door.enter("P", "h")
    assert not door.has_room("P")
    assert door.excess == 2
    for listener in "ABPP":
        door.leave(listener, "h")
    assert door.excess == 0
    assert all(door.has_room(listener) for listener in "ABP")


def test_an_address_has_room_of_its_own() -> None:
    door = quotas(per_address_max=1, per_address_overrides={"h": 2})
    for _ in range(2):
        assert not door.is_full_for("h")
        door.enter("A", "h")
    assert door.is_full_for("h")
    assert not door.is_full_for("other")
    door.leave("A", "h")
    assert not door.is_full_for("h")
