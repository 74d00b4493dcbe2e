"""Java programs are compiled once for what they say, and not at all if they are wrong."""

import subprocess
from pathlib import Path

import pytest

from compat import java_programs
from compat.java_programs import NotCompiled, program_command
from compat.oracle.jars import KafkaMissing

pytestmark = pytest.mark.slow

VERSION_PROGRAM = """
import org.apache.kafka.common.utils.internals.AppInfoParser;

public class Tell {
    public static void main(String[] arguments) {
        System.out.println(arguments[0] + " " + AppInfoParser.getVersion());
    }
}
"""


@pytest.fixture
def sources(kafka_jars: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    try:
        java_programs._find_compiler()
    except KafkaMissing as missing:
        pytest.skip(str(missing))
    monkeypatch.setattr(java_programs, "CACHE", tmp_path / "classes")
    folder = tmp_path / "told"
    folder.mkdir()
    return folder


def test_a_program_runs_with_kafka_beside_it(sources: Path) -> None:
    (sources / "Tell.java").write_text(VERSION_PROGRAM)
    done = subprocess.run(
        program_command(sources, "Tell", "it is"), capture_output=True, text=True, check=True
    )
    assert done.stdout == "it is 4.4.0\n"


def test_a_wrong_program_says_where_and_leaves_no_classes(sources: Path, tmp_path: Path) -> None:
    (sources / "Tell.java").write_text("public class Tell { int number = null; }")
    with pytest.raises(NotCompiled, match=r"Tell\.java:1: error: incompatible types"):
        program_command(sources, "Tell")
    assert [path for path in (tmp_path / "classes").iterdir() if path.suffix != ".lock"] == []
