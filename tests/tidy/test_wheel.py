"""A wheel, installed where nothing else is: it starts a broker, and adds no package but ``ottla``."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from compat.probe import answers_api_versions
from compat.waiting import wait_until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with our wheel and what it says that it depends on."""
    environment = tmp_path_factory.mktemp("wheel") / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", environment, folder=environment.parent)
    # This environment's pip makes the wheel and installs it into the other one, which needs none of its own.
    pip = ("-m", "pip", "--python", environment / "bin" / "python", "--disable-pip-version-check", "--quiet")
    run(sys.executable, *pip, "install", "--no-compile", ROOT, folder=environment.parent)
    return environment


def installed_by_us(environment: Path) -> set[str]:
    """The top-level names that the wheel put into the environment, its own notes apart."""
    code = "import importlib.metadata as metadata\nfor file in metadata.files('ottla'): print(file.parts[0])"
    python = environment / "bin" / "python"
    return {
        name for name in run(python, "-c", code, folder=environment).split() if not name.endswith("-info")
    }


def test_no_package_but_ottla_is_added(environment: Path) -> None:
    assert installed_by_us(environment) - {"..", "__pycache__"} == {"ottla"}


@pytest.mark.parametrize("command", [("bin/ottla",), ("bin/python", "-m", "ottla")], ids=["script", "module"])
def test_the_installed_command_starts_a_broker(
    environment: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    # A user's own folders must not be mistaken for ours.
    for name in ("storage", "protocol", "broker"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('this is the user\\'s')")
    ready_file = tmp_path / "ready"
    program, *rest = command
    options = ("--port", "0", "--ephemeral", "--ready-file", str(ready_file))
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    broker = subprocess.Popen([environment / program, *rest, *options], cwd=tmp_path, env=clean)
    try:
        wait_until(lambda: ready_file.exists() or broker.poll() is not None, "the broker is ready")
        assert answers_api_versions(ready_file.read_text().strip())
    finally:
        broker.terminate()
        assert broker.wait(20) == 0


def test_a_test_of_somebody_else_starts_a_cluster(environment: Path, tmp_path: Path) -> None:
    code = (
        "from ottla.cluster import Cluster\n"
        "with Cluster('data', nodes=1) as cluster: print(cluster.node('node-1').state.value)"
    )
    assert run(environment / "bin" / "python", "-c", code, folder=tmp_path) == "running\n"
