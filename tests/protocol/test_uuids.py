"""UUIDs as text: what Kafka's own reader takes, and nothing else."""

import pytest

from protocol.uuids import ZERO_UUID, uuid_from_text, uuid_to_text

TEXT = "5GfNW1uFTROj_TJLDxyk-Q"


def test_there_and_back() -> None:
    assert uuid_to_text(uuid_from_text(TEXT)) == TEXT
    assert uuid_from_text("A" * 22) == ZERO_UUID


def test_padding_may_be_there() -> None:
    assert uuid_from_text(TEXT + "==") == uuid_from_text(TEXT)


@pytest.mark.parametrize(
    "text",
    [
        "",
        TEXT[:-1],
        TEXT + "A",
        TEXT + "=",
        TEXT + "===",
        TEXT + "====",
        "==" + TEXT,
        TEXT.replace("_", "/"),
        TEXT.replace("-", "+"),
        TEXT + "!",
        "!!" + TEXT,
        TEXT[:11] + "\n" + TEXT[11:],
        TEXT[:21] + " ",
        TEXT[:21] + "é",
        TEXT + "AA",
    ],
)
def test_what_is_no_uuid(text: str) -> None:
    with pytest.raises(ValueError, match="base64"):
        uuid_from_text(text)
