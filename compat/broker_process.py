"""Ottla as a user starts it: a process of its own, met over sockets and signals only."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
START_TIMEOUT_SECONDS = 60
STOP_TIMEOUT_SECONDS = 60
LOG_TAIL = 4000


def is_setting(variable: str) -> bool:
    """Whether the broker would read the variable: what it is told must come from its test alone."""
    return variable.startswith("KAFKA_") or variable == "CLUSTER_ID"


def clean_environment() -> dict[str, str]:
    """This process's environment without what a broker would read from it."""
    return {name: value for name, value in os.environ.items() if not is_setting(name)}


class BrokerProcess:
    """One broker with its files in ``folder``: its data unless ``ephemeral``, its log and its ready file.

    It can be started again after it ended, on the same data and the same port.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        *,
        arguments: Sequence[str] = (),
        ephemeral: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.log_file = folder / "broker.log"
        self.settings = dict(settings or {})
        self.arguments = list(arguments)
        self.ephemeral = ephemeral
        settled = clean_environment()
        settled.pop("PYTHONDONTWRITEBYTECODE", None)  # a user's second start has its bytecode
        # What an ephemeral broker leaves when it is killed goes with the rest.
        settled["TMPDIR"] = str(folder.resolve())
        self.environment = {**settled, **(environment or {})}
        self.address = ""
        self.root = ROOT
        """The tree whose broker it is."""
        self.stop_timeout_seconds: float = STOP_TIMEOUT_SECONDS
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def command(self) -> list[str]:
        """The command line, with the port of the last start if there was one."""
        command = [sys.executable, "-m", "ottla", "--ready-file", str(self.ready_file)]
        if self.ephemeral:
            command.append("--ephemeral")
        elif "log.dirs" not in self.settings:
            command += ["--data", str(self.data)]
        if "listeners" not in self.settings:
            command += ["--port", self.address.rpartition(":")[2] or "0"]
        for name, value in self.settings.items():
            command += ["--override", f"{name}={value}"]
        return [*command, *self.arguments]

    @property
    def ready_file(self) -> Path:
        return self.folder / "ready"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log(self) -> str:
        """All that the broker said, in every start."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def start(self) -> None:
        """Return when the broker says that it is ready."""
        self.launch()
        process = self._process
        assert process is not None
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not self.ready_file.exists():
            if process.poll() is not None:
                raise RuntimeError(f"the broker ended with {process.returncode}:\n{self.log()[-LOG_TAIL:]}")
            if time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the broker did not become ready:\n{self.log()[-LOG_TAIL:]}")
            time.sleep(0.005)
        self.address = self.ready_file.read_text().strip()

    def launch(self) -> None:
        """Start the process and do not wait for it."""
        assert not self.is_running
        self.ready_file.unlink(missing_ok=True)
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.root,
                env=self.environment,
            )

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ask the broker to stop, and give its exit code."""
        return self._end(how)

    def kill(self) -> int:
        """End the process without letting it do anything more."""
        return self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> int:
        process = self._process
        assert process is not None
        if process.poll() is None:
            process.send_signal(how)
        try:
            return process.wait(self.stop_timeout_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise RuntimeError(f"the broker did not stop:\n{self.log()[-LOG_TAIL:]}") from None


@contextmanager
def running_broker(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    *,
    arguments: Sequence[str] = (),
    ephemeral: bool = False,
) -> Iterator[BrokerProcess]:
    """A broker that is ready, and that is stopped when the block is left."""
    broker = BrokerProcess(folder, settings, arguments=arguments, ephemeral=ephemeral)
    broker.start()
    try:
        yield broker
    finally:
        if broker.is_running:
            broker.stop()
