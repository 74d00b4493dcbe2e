"""Programs for Node find the packages that they pin, which are installed once and hold to what is locked."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat import node_programs
from compat.node_driver.client import KAFKAJS, PLATFORMATIC, NodeClient
from compat.node_programs import NodeMissing, command, find_node, installed

CLIENTS = (KAFKAJS, PLATFORMATIC)

LOCK = {"name": "told", "lockfileVersion": 3, "requires": True, "packages": {"": {"name": "told"}}}


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    monkeypatch.setattr(node_programs, "CACHE", tmp_path / "packages")
    folder = tmp_path / "told"
    folder.mkdir()
    (folder / "package.json").write_text(json.dumps({"name": "told", "private": True}))
    (folder / "package-lock.json").write_text(json.dumps(LOCK))
    (folder / "main.js").write_text("console.log(process.env.NODE_PATH)\n")
    find_node.cache_clear()
    yield folder
    find_node.cache_clear()


@pytest.mark.parametrize("client", CLIENTS, ids=[client.module for client in CLIENTS])
def test_what_is_pinned_is_locked_and_comes_from_whatever_registry(client: NodeClient) -> None:
    locked = json.loads((client.sources / "package-lock.json").read_text())["packages"]
    pinned = json.loads((client.sources / "package.json").read_text())["dependencies"]
    assert pinned[client.module] == client.pinned_version()
    for package, version in pinned.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version), "pinned to more than one version"
        assert locked[f"node_modules/{package}"]["version"] == version
    for place, package in locked.items():
        assert "resolved" not in package, f"{place}: the lock file names a host"
        assert not place or package["integrity"]


def test_without_node_it_is_said(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(NodeMissing, match=r"^node is not installed$"):
        command(sources)


def test_a_node_that_is_too_old_is_said(
    sources: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\necho v18.19.0\n")
    node.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda _: str(node))
    with pytest.raises(NodeMissing, match=r"^node v18\.19\.0 is too old$"):
        command(sources)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_a_program_is_told_where_its_packages_are(sources: Path) -> None:
    done = subprocess.run(command(sources), capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == installed(sources) / "node_modules"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_packages_that_cannot_be_had_are_said(sources: Path, tmp_path: Path) -> None:
    asked = {"name": "told", "private": True, "dependencies": {"other": "1.0.0"}}
    (sources / "package.json").write_text(json.dumps(asked))
    installed.cache_clear()
    with pytest.raises(NodeMissing, match=r"^the packages of told cannot be had: "):
        installed(sources)
    assert [path for path in (tmp_path / "packages").iterdir() if path.suffix != ".lock"] == []
