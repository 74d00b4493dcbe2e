"""Which names a topic may have."""

import pytest

from broker.metadata.image import collision_key, has_collision_characters
from broker.metadata.topic_names import check, fault_in
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError


@pytest.mark.parametrize("name", ["a", "A-z_0.9", "...", "-", "x" * 249, "__consumer_offsets"])
def test_good_names(name: str) -> None:
    assert fault_in(name) is None
    check(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "x" * 250, "a b", "a/b", "a\n", "ä", "a\x00", "a:b", "\N{DIGIT ZERO}\N{KHMER DIGIT ONE}"],
)
def test_bad_names(name: str) -> None:
    with pytest.raises(KafkaError) as raised:
        check(name)
    assert raised.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert raised.value.message == f"Topic name is invalid: {fault_in(name)}"


def test_what_collides() -> None:
    assert collision_key("a.b_c") == collision_key("a_b.c") != collision_key("abc")
    assert has_collision_characters("a.b")
    assert has_collision_characters("a_b")
    assert not has_collision_characters("a-b")
