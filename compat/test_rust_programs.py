"""Rust programs are built once for what they say, and not at all if they are wrong."""

import shutil
import subprocess
from pathlib import Path

import pytest

from compat import rust_programs
from compat.rust_programs import NotBuilt, RustMissing, built, pinned_version
from compat.rust_rskafka import client as rskafka

MANIFEST = '[package]\nname = "told"\nversion = "1.2.3"\nedition = "2021"\n'
LOCK = 'version = 3\n\n[[package]]\nname = "told"\nversion = "1.2.3"\n'


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(rust_programs, "CACHE", tmp_path / "binaries")
    folder = tmp_path / "told"
    (folder / "src").mkdir(parents=True)
    (folder / "Cargo.toml").write_text(MANIFEST)
    (folder / "Cargo.lock").write_text(LOCK)
    return folder


def test_pinned_versions_are_read(sources: Path) -> None:
    assert pinned_version(sources, "told") == "1.2.3"
    with pytest.raises(ValueError, match=r"^told does not pin other$"):
        pinned_version(sources, "other")
    assert f'rskafka = "={rskafka.pinned_version()}"' in (rskafka.SOURCES / "Cargo.toml").read_text()


def test_without_cargo_it_is_said(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(RustMissing, match=r"^cargo is not installed$"):
        built(sources)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_a_program_is_built_and_a_wrong_one_says_where(sources: Path) -> None:
    (sources / "src" / "main.rs").write_text('fn main() { println!("built") }\n')
    done = subprocess.run([str(built(sources))], capture_output=True, text=True, check=True)
    assert done.stdout == "built\n"
    (sources / "src" / "main.rs").write_text("fn main() { number }\n")
    built.cache_clear()
    with pytest.raises(NotBuilt, match=r"src/main\.rs:1:13"):
        built(sources)
