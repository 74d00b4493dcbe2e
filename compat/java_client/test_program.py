"""Every version of the Java client is a client of its own, run by the same program."""

from pathlib import Path

import pytest

from compat.java_client import program
from compat.oracle.jars import KafkaMissing
from compat.scenarios.missing import ClientMissing


def test_versions_have_names_of_their_own() -> None:
    names = [program.client_of(version) for version in (program.NEWEST, *program.OLDER)]
    older = [f"kafka-clients ({version})" for version in ("3.9", "2.8", "2.1", "1.1", "0.11")]
    assert names == ["kafka-clients", *older]


@pytest.mark.parametrize("version", [program.NEWEST, *program.OLDER])
def test_what_a_version_lacks_here_is_said(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> list[str]:
        raise KafkaMissing("there is none")

    monkeypatch.setattr(program, "program_command", missing)
    monkeypatch.setattr(program, "_jars_of", lambda _: Path("nowhere"))
    with pytest.raises(ClientMissing, match=rf"^no Java client {version}: there is none$"):
        program.driver_command(version)
