"""Every setting of Kafka either acts, and a test shows it, or a word says why it does not."""

import ast
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from broker.config.definitions import Scope, definitions
from broker.config.reasons import REASONS
from tests.broker.config.page import PAGE, page

TESTS = Path(__file__).parents[2]
ROOT = TESTS.parent


def test_a_setting_acts_or_has_a_reason() -> None:
    words = {
        f"{known.scope.value}/{known.name}": known.reason for scope in Scope for known in definitions(scope)
    }
    assert {name: word for name, word in words.items() if word is not None and word not in REASONS} == {}
    assert set(REASONS) <= set(words.values()), "a reason that is nobody's"


def test_what_acts_is_shown_to_act_and_what_does_not_is_not() -> None:
    shown = {name for path in sorted(TESTS.rglob("test_*.py")) for name in shown_in(path)}
    acting = {known.name for scope in Scope for known in definitions(scope) if known.is_heeded}
    assert acting - shown == set(), "settings that no test shows to act: see the mark `acts`"
    assert shown - acting == set(), "settings that have no effect, going by broker/config/tables.py"


def shown_in(path: Path) -> Iterator[str]:
    """The settings that a module's tests are marked to show, each of which it must set itself."""
    text = path.read_text(encoding="utf-8")
    if "pytest.mark.acts(" not in text:
        return
    tree = ast.parse(text)
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    marks = [
        mark
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for mark in node.decorator_list
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.acts"
    ]
    said = [constant for mark in marks for constant in ast.walk(mark)]
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in said
    ]
    texts += [put_together(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    words = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    for mark in marks:
        for argument in mark.args:
            if isinstance(argument, ast.Starred):
                yield from ast.literal_eval(named[ast.unparse(argument.value)])
                continue
            name = ast.literal_eval(argument)
            assert name.replace(".", "_") in words or any(sets(text, name) for text in texts), (
                f"{path.relative_to(ROOT)} claims to show {name} and does not set it"
            )
            yield name


def put_together(node: ast.JoinedStr) -> str:
    """A text with its blanks, for ``fnmatch``."""
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values)


def sets(text: str, name: str) -> bool:
    return name in text or (text.strip("*") != "" and fnmatchcase(name, text))


def test_the_page_of_settings_is_what_the_tables_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.broker.config.page"
