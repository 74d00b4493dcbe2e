"""Imports point one way; `ARCHITECTURE.md` says which."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("protocol", "storage", "broker", "ottla")
"""From the lowest to the highest: a layer imports itself and those before it."""

FROM_OUTSIDE = ("compat", "benchmarks")
"""They meet a broker as its clients do; only the codecs may be taken apart or used."""

FOR_USERS = "ottla.cluster"
"""What whoever is outside uses, too: it starts processes, and meets them as anybody does."""

EVENT_LOOPS = ("trio", "asyncio", "anyio", "selectors")
SYNCHRONOUS = ("protocol", "storage")

SOURCES = sorted(path for layer in (*LAYERS, *FROM_OUTSIDE) for path in (ROOT / layer).rglob("*.py"))


def imports(tree: ast.AST, module: str) -> Iterator[str]:
    """The absolute names that the code of ``module`` imports, each with what is taken from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*package, *([node.module] if node.module else [])])
            yield from (f"{base}.{name.name}" for name in node.names)


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@cache
def api_modules() -> set[str]:
    """The modules of ``broker/apis`` that answer requests."""
    found = set()
    for path in (ROOT / "broker" / "apis").glob("*.py"):
        names = {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}
        if "handle" in names:
            found.add(module_name(path))
    return found


def violations(source: str, module: str) -> list[str]:
    """What in ``source`` goes against the layers, in words."""
    tree = ast.parse(source)
    layer = module.partition(".")[0]
    allowed = ("protocol", *FROM_OUTSIDE) if layer in FROM_OUTSIDE else LAYERS[: LAYERS.index(layer) + 1]
    apis = api_modules()
    found = [
        f"{module} reaches out of its folder with a relative import"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level > 1
    ]
    for name in imports(tree, module):
        target = name.partition(".")[0]
        if target in LAYERS and target not in allowed and not name.startswith(f"{FOR_USERS}."):
            found.append(f"{module} may not import {name}")
        if target in EVENT_LOOPS and layer in SYNCHRONOUS:
            found.append(f"{module} is synchronous and may not import {name}")
        for api in apis:
            if (name == api or name.startswith(f"{api}.")) and module != api:
                found.append(f"{module} may not import {api}: broker.apis.table names it as text")
    return found


def test_imports_go_one_way() -> None:
    found = [violation for path in SOURCES for violation in violations(path.read_text(), module_name(path))]
    assert found == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("protocol.frames", "import storage.segment"),
        ("protocol.frames", "def f():\n    from broker import clock"),
        ("storage.segment", "from broker.clock import Clock"),
        ("storage.segment", "import trio"),
        ("broker.app", "from ottla import cluster"),
        ("broker.network.peer", "from ..clock import Clock"),
        ("compat.oracle.kafka", "import storage.partition_log"),
        ("benchmarks.produce", "from broker.app import serve"),
    ],
)
def test_the_check_finds_what_it_looks_for(module: str, source: str) -> None:
    assert len(violations(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("broker.app", "import trio\nfrom storage.segment import Segment\nfrom .clock import Clock"),
        ("ottla.__main__", "import broker.app"),
        ("benchmarks.codecs", "from protocol.messages.produce import ProduceRequest"),
    ],
)
def test_the_check_lets_the_rest_pass(module: str, source: str) -> None:
    assert violations(source, module) == []


def test_every_folder_of_the_source_is_a_package() -> None:
    folders = {path.parent for path in SOURCES}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []
