"""Applications of Kafka Streams in a process of their own, told by lines what to do."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compat.java_programs import program_command
from compat.streams.jars import find_streams_jars
from compat.waiting import wait_until

PROGRAM = Path(__file__).with_name("counting")
PATIENCE_SECONDS = 60.0


class Applications:
    """Instances of applications that count words; see ``counting/Counting.java``."""

    def __init__(self, address: str, folder: Path) -> None:
        """Raises KafkaMissing where Java or Kafka Streams is not to be had."""
        command = program_command(
            PROGRAM, "Counting", address, str(folder / "state"), libraries=find_streams_jars()
        )
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "applications.log"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1
            )

    def _ask(self, *words: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(words) + "\n")
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the applications have ended:\n{self.log.read_text()[-4000:]}")
        return answer.strip()

    def start(self, instance: str, application: str, protocol: str) -> None:
        """Let an instance join its application; nobody waits for it."""
        self._ask("start", instance, application, protocol)

    def state(self, instance: str) -> str:
        """As Kafka Streams calls it."""
        return self._ask("state", instance)

    def wait_for_tasks(self, *instances: str) -> None:
        """Wait until all of them run and have something to do."""

        def do_work() -> bool:
            return all(
                self.state(instance) == "RUNNING" and int(self._ask("tasks", instance)) > 0
                for instance in instances
            )

        wait_until(do_work, f"{', '.join(instances)} work", patience_seconds=PATIENCE_SECONDS)

    def leave(self, instance: str) -> None:
        """Let an instance give up its tasks and go."""
        assert self._ask("close", instance) == "true", f"{instance} does not go"

    def kill(self) -> None:
        """End all instances as a crash would."""
        self._process.kill()
        self._process.communicate()


@contextmanager
def running_applications(address: str, folder: Path) -> Iterator[Applications]:
    """They are killed when the block is left, if they still run."""
    applications = Applications(address, folder)
    try:
        yield applications
    finally:
        applications.kill()
