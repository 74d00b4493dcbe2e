"""What is imported before the port is open: start-up is `import trio` and little else."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compat.broker_process import BrokerProcess

HERE = Path(__file__).parent

LATER = {
    "asyncio",
    "concurrent.futures",
    "cramjam",
    "dataclasses",
    "email",
    "http",
    "importlib.metadata",
    "logging",
    "lz4",
    "multiprocessing",
    "shutil",
    "ssl",
    "subprocess",
    "tempfile",
    "unittest",
    "urllib",
    "zstandard",
}
"""Costly modules that nothing needs until a client asks for something.

What trio imports does not count, nor does argparse: a start without arguments does without it.  Kafka's
quorum-state is JSON, so that is needed, too.
"""

MESSAGE_MODULES_MAX = 6
"""Modules of ``protocol.messages`` that starting may need: each API's are imported with its first request."""


def imported_when_ready(folder: Path) -> set[str]:
    """The modules that a new broker has imported when it says that it is ready."""
    site = folder / "site"
    site.mkdir()
    shutil.copy(HERE / "imports_at_start.py", site / "sitecustomize.py")
    imported = folder / "imported"
    broker = BrokerProcess(folder, ephemeral=True)
    broker.environment |= {
        "PYTHONPATH": str(site),
        "OTTLA_TEST_READY_FILE": str(broker.ready_file),
        "OTTLA_TEST_IMPORTED_FILE": str(imported),
    }
    broker.start()
    broker.stop()
    return set(imported.read_text().split("\n"))


def imported_by_trio() -> set[str]:
    code = "import sys, trio; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    return imported_when_ready(tmp_path_factory.mktemp("start")) - imported_by_trio()


def test_nothing_heavy_is_imported_before_the_port_is_open(imported: set[str]) -> None:
    assert "broker.app" in imported
    heavy = {name for name in imported if any(name == late or name.startswith(f"{late}.") for late in LATER)}
    assert sorted(heavy) == []


def test_api_modules_are_imported_with_their_first_request(imported: set[str]) -> None:
    apis = {name for name in imported if name.startswith("broker.apis.")} - {"broker.apis.table"}
    assert sorted(apis) == []


def test_few_messages_are_imported_before_the_port_is_open(imported: set[str]) -> None:
    messages = {name for name in imported if name.startswith("protocol.messages.")}
    assert len(messages) <= MESSAGE_MODULES_MAX, sorted(messages)
