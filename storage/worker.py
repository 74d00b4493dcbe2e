"""``python -m storage.worker``: a process of its own for what computes for long.

Threads would share the interpreter's lock with the broker's loop.  Each line on standard input is one
job, as JSON, and the answers are lines on standard output.  For ``{"clean": …}``, which compacts a log,
these are any number of ``{"ready": [bases]}``, then ``{"cleaned": …}``; for ``{"recover": …}`` any number of
``{"checked": bytes}`` and ``{"report": line}``, then ``{"recovered": …}``; for either it may be
``{"failed": text, "is_damage": …}`` in the end.  ``{"limit": bytes per second}`` changes the rate of the job
that is being done.  When standard input closes, which it does however the
broker ends, the process is gone.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from math import inf
from queue import SimpleQueue
from threading import Condition, Thread
from typing import Any

from protocol.errors import DecodeError
from storage.cleaned_segments import clean
from storage.cleaner import CleaningJob
from storage.errors import StorageError
from storage.filesystem import RealFileSystem
from storage.heap import keep_freed_memory
from storage.log_services import LogServices
from storage.recovery_job import RecoveryJob, Say, run_recovery

OPEN_FILES_MAX = 64

SLEEP_SECONDS_MAX = 600
"""However low the rate is: at 0 bytes a second the first batch would be the last."""


class Throttle:
    """Sleeps so that no more than ``bytes_per_second`` move (``log.cleaner.io.max.bytes.per.second``).

    Less than none, and NaN, which the setting may be, too, are no limit: as in Kafka.  Another thread may
    ``change`` the rate, which wakes whoever sleeps for an older one.
    """

    def __init__(
        self,
        bytes_per_second: float = -1,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self._changed = Condition()
        self._clock = clock
        self._sleep = sleep or self._changed.wait
        self.change(bytes_per_second)

    def change(self, bytes_per_second: float) -> None:
        """Let another rate hold from now on, whatever was moved before."""
        with self._changed:
            self._bytes_per_second = bytes_per_second
            self._start = self._clock()
            self._moved = 0
            self._changed.notify_all()

    def __call__(self, count: int) -> None:
        with self._changed:
            self._moved += count
            rate = self._bytes_per_second
            wanted = self._moved / rate if rate else inf
            if wanted > 0.001:
                ahead = wanted - (self._clock() - self._start)
                if ahead > 0.001:
                    self._sleep(min(ahead, SLEEP_SECONDS_MAX))


def do_job(services: LogServices, kind: str, facts: dict[str, Any], say: Say, throttle: Throttle) -> None:
    """Do one job and say what comes of it."""
    try:
        if kind == "recover":
            run_recovery(services, RecoveryJob(**facts), say)
        else:
            job = CleaningJob(**facts)
            say({"cleaned": clean(services, job, lambda bases: say({"ready": bases}), throttle)})
    except (StorageError, DecodeError) as damage:
        say({"failed": str(damage), "is_damage": True})
    except OSError as error:
        say({"failed": str(error), "is_damage": False})


def main() -> None:
    keep_freed_memory()
    jobs: SimpleQueue[tuple[str, dict[str, Any]]] = SimpleQueue()
    throttle = Throttle()

    def receive() -> None:
        for line in sys.stdin.buffer:
            ((kind, facts),) = json.loads(line).items()
            if kind == "limit":
                throttle.change(facts)
                continue
            if kind == "clean":
                throttle.change(facts["bytes_per_second"])
            jobs.put((kind, facts))
        os._exit(0)  # in the middle of whatever it is: nobody waits for it

    def say(answer: dict[str, Any]) -> None:
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()

    Thread(target=receive, daemon=True).start()
    services = LogServices(
        RealFileSystem(),
        random_below=lambda _: 0,
        report=lambda line: say({"report": line}),
        open_files_max=OPEN_FILES_MAX,
    )
    while True:
        do_job(services, *jobs.get(), say, throttle)


if __name__ == "__main__":
    main()
