import re
import uuid

from broker.identifiers import Identifiers
from protocol.uuids import is_reserved, uuid_from_text, uuid_to_text


def test_a_seed_makes_everything_repeatable(seed: int) -> None:
    def draw(source: Identifiers) -> list[object]:
        return [
            source.uuid(),
            source.uuid_text(),
            source.dashed_uuid(),
            source.member_id("consumer"),
            source.fetch_session_id(),
            source.random.random(),
        ]

    assert draw(Identifiers(seed)) == draw(Identifiers(seed))
    assert draw(Identifiers(seed)) != draw(Identifiers(seed + 1))
    assert draw(Identifiers()) != draw(Identifiers())


def test_uuids_are_random_ones_whose_text_is_no_option(seed: int) -> None:
    source = Identifiers(seed)
    drawn = [source.uuid() for _ in range(5000)]  # without the rule, one in 64 would begin with a dash
    assert len(set(drawn)) == len(drawn)
    for value in drawn:
        parsed = uuid.UUID(bytes=value)
        assert (parsed.version, parsed.variant) == (4, uuid.RFC_4122)
        assert not uuid_to_text(value).startswith("-")
        assert not is_reserved(value)


def test_their_text_can_be_read_again(seed: int) -> None:
    text = Identifiers(seed).uuid_text()
    assert len(text) == 22
    assert uuid_to_text(uuid_from_text(text)) == text


def test_member_ids_end_in_a_uuid_as_java_prints_it(seed: int) -> None:
    prefix, _, rest = Identifiers(seed).member_id("my-client").partition("my-client-")
    assert prefix == ""
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", rest)


def test_session_ids_are_positive(seed: int) -> None:
    source = Identifiers(seed)
    assert all(0 < source.fetch_session_id() < 2**31 for _ in range(1000))
