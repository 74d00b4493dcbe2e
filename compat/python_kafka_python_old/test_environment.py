"""The old client's environment is made whole, or not at all and for a reason."""

import subprocess
from pathlib import Path

import pytest

from compat import python_environments
from compat.python_environments import Environment
from compat.python_kafka_python_old.environment import OLD_KAFKA_PYTHON
from compat.scenarios.missing import ClientMissing

pytestmark = pytest.mark.slow


def test_it_has_the_pinned_client_and_nothing_of_ours() -> None:
    try:
        python = OLD_KAFKA_PYTHON.find_python()
    except ClientMissing as missing:
        pytest.skip(str(missing))
    told = "import importlib.metadata as m; print(m.version('kafka-python'), len(list(m.distributions())))"
    done = subprocess.run([str(python), "-c", told], capture_output=True, text=True, check=True)
    version, count = done.stdout.split()
    assert version == OLD_KAFKA_PYTHON.pinned_version()
    pinned = [line for line in OLD_KAFKA_PYTHON.requirements.read_text().splitlines() if "==" in line]
    assert int(count) == len(pinned)


def test_what_pip_cannot_provide_is_said_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("kafka-python==1.4.7\n./there-is-no-such-folder\n")
    monkeypatch.setattr(python_environments, "CACHE", tmp_path / "clients")
    with pytest.raises(ClientMissing, match=r"^no environment for kafka-python 1\.4\.7: .*there-is-no-such"):
        Environment("kafka-python", requirements).find_python()
    assert [path for path in (tmp_path / "clients").iterdir() if path.suffix != ".lock"] == []
