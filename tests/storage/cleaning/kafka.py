"""Kafka's side: its log and its cleaner, without a broker around them."""

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from compat.oracle.java import QUICK_START, java_command
from tests.storage.cleaning.batches import Batches
from tests.storage.cleaning.histories import MAY_BE_REFUSED, History, Step
from tests.storage.cleaning.outcomes import Outcome, outcome

PROGRAM = Path(__file__).with_name("PartitionLogs.java")
AFTER_MAX = "message.timestamp.after.max.ms"


class Refused(Exception):
    """Kafka did not do what a step asks for."""


class KafkaLogs:
    """One process for any number of histories.  Raises KafkaMissing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            java_command(str(PROGRAM), options=QUICK_START),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._number = 0

    def __enter__(self) -> "KafkaLogs":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def play(self, history: History) -> "KafkaLog":
        """A new log in which the steps of ``history`` can be done."""
        self._number += 1
        return KafkaLog(self, self._folder / str(self._number), history.keys_max)

    def ask(self, *words: object) -> str:
        """Raises Refused."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        print(*words, file=process.stdin, flush=True)
        answer = process.stdout.readline().rstrip("\n")
        if answer.startswith("refused") or process.poll() is not None:
            raise Refused(f"{words[0]}: {answer}")
        return answer


class KafkaLog:
    """The steps of a history, done by Kafka."""

    def __init__(self, logs: KafkaLogs, folder: Path, keys_max: int) -> None:
        self._ask = logs.ask
        self._batches = Batches()
        self._log = folder / "log-0"
        self._ask("create", folder, keys_max)

    def perform(self, step: Step) -> bool:
        """Whether it was done; a batch may be refused."""
        try:
            getattr(self, step.name)(**step.facts)
        except Refused:
            if step.name not in MAY_BE_REFUSED:
                raise
            return False
        return True

    def configure(self, settings: dict[str, Any]) -> None:
        pairs = [f"{name}={value}" for name, value in settings.items()]
        self._ask("configure", *pairs, f"{AFTER_MAX}={(1 << 63) - 1}")

    def clock(self, now_ms: int) -> None:
        self._ask("clock", now_ms)

    def write(self, *, is_coordinator: bool = False, **facts: Any) -> None:
        self._append("COORDINATOR" if is_coordinator else "CLIENT", 2, self._batches.data(**facts))

    def end(self, *, transactions_version: int, **facts: Any) -> None:
        self._append("COORDINATOR", transactions_version, self._batches.marker(**facts))

    def _append(self, origin: str, transactions_version: int, batch: bytearray) -> None:
        self._ask("append", origin, transactions_version, self._batches.leader_epoch, batch.hex())

    def lead(self, epoch: int) -> None:
        self._batches.leader_epoch = epoch
        self._ask("lead", epoch)

    def delete(self, before: int) -> None:
        self._ask("delete", before)

    def roll(self) -> None:
        self._ask("roll")

    def expire(self) -> None:
        self._ask("expire")

    def restart(self, *, is_clean: bool) -> None:
        self._ask("restart", "clean" if is_clean else "unclean")

    def clean(self) -> None:
        self._ask("clean")

    def outcome(self) -> Outcome:
        """How the log is now."""
        files = {path.name: path.read_bytes() for path in self._log.iterdir()}
        return outcome(json.loads(self._ask("tell")), files)
