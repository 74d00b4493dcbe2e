"""Every setting has a sentence of its own, and no sentence is for a setting that does not exist."""

import pytest

from broker.config import documentation as module
from broker.config.definitions import Definition, Scope, definitions, names
from broker.config.documentation import documentation


@pytest.mark.parametrize("scope", Scope)
def test_every_setting_is_documented_in_whole_sentences(scope: Scope) -> None:
    undocumented = [known.name for known in definitions(scope) if not _is_sentence(known)]
    assert undocumented == []


def _is_sentence(known: Definition) -> bool:
    text = documentation(known.scope, known.name)
    return text is not None and text[0].isupper() and text.endswith(".")


@pytest.mark.parametrize("scope", Scope)
def test_no_text_is_for_a_name_that_is_no_setting(scope: Scope) -> None:
    table: str = getattr(module, scope.name)
    written = [line.split()[0] for line in table.splitlines()]
    assert set(written) <= set(names(scope))
    assert written == sorted(set(written))


def test_a_default_says_whose_default_it_is() -> None:
    text = documentation(Scope.BROKER, "log.segment.bytes")
    assert text == (
        "Default of the topic setting segment.bytes. Size at which a segment is full and the next one begins."
    )


def test_a_name_that_is_no_setting_has_no_text() -> None:
    assert documentation(Scope.BROKER, "nope") is None
