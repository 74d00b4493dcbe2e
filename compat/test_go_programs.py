"""Go programs are built once for what they say, and not at all if they are wrong."""

import shutil
import subprocess
from pathlib import Path

import pytest

from compat import go_programs
from compat.go_driver.client import FRANZ, SARAMA, SEGMENTIO
from compat.go_programs import GoMissing, NotBuilt, built, pinned_version


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(go_programs, "CACHE", tmp_path / "binaries")
    folder = tmp_path / "told"
    folder.mkdir()
    (folder / "go.mod").write_text("module ottla/told\n\ngo 1.20\n\nrequire example.org/one v1.2.3\n")
    (folder / "go.sum").write_text("")
    return folder


def test_pinned_versions_are_read(sources: Path) -> None:
    assert pinned_version(sources, "example.org/one") == "1.2.3"
    with pytest.raises(ValueError, match=r"^told does not pin example\.org/other$"):
        pinned_version(sources, "example.org/other")
    for client in (FRANZ, SARAMA, SEGMENTIO):
        assert client.pinned_version().count(".") == 2


def test_without_go_it_is_said(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(GoMissing, match=r"^go is not installed$"):
        built(sources)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")
def test_a_program_is_built_and_a_wrong_one_says_where(sources: Path, tmp_path: Path) -> None:
    (sources / "go.mod").write_text("module ottla/told\n\ngo 1.20\n")
    (sources / "main.go").write_text('package main\n\nfunc main() { println("built") }\n')
    done = subprocess.run([str(built(sources))], capture_output=True, text=True, check=True)
    assert done.stderr == "built\n"
    (sources / "main.go").write_text("package main\n\nfunc main() { number }\n")
    built.cache_clear()
    with pytest.raises(NotBuilt, match=r"main\.go:3:.*number"):
        built(sources)
    assert len([path for path in (tmp_path / "binaries").iterdir() if path.suffix != ".lock"]) == 1
