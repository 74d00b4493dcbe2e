"""The broker's side of ``python -m storage.worker``."""

import os
import sys
from pathlib import Path
from typing import Any

import trio

import storage

PACKAGES = str(Path(storage.__file__).resolve().parent.parent)
"""Where this process has ``storage`` from: no other of that name may take its place in the worker."""

GRACE_SECONDS = 5
"""How long a worker has to end after its standard input is closed."""


ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(64 << 20),
    "MALLOC_TOP_PAD_": str(16 << 20),
}
"""For the C library of Linux, which would give the memory of each large batch back to the system and ask
for it again: a fifth of the time that compressed batches take."""


class WorkerGone(Exception):
    """The process has ended in the middle of its job, or could not begin; the next job gets another one."""

    def __init__(self, reason: str = "the worker process is gone") -> None:
        super().__init__(reason)


class WorkerProcess:
    """A worker that is started with its first job; one job at a time."""

    def __init__(self) -> None:
        self._process: trio.Process | None = None
        self._received = b""

    async def give(self, kind: str, facts: object) -> None:
        """Begin a job, such as ``clean``, or say something about the one that is being done.

        Raises WorkerGone.
        """
        from json import dumps

        process = await self._running_process()
        assert process.stdin is not None
        try:
            await process.stdin.send_all(dumps({kind: facts}).encode() + b"\n")
        except trio.BrokenResourceError:
            await self.close()
            raise WorkerGone from None

    async def hear(self) -> dict[str, Any]:
        """The next answer to the job.  Raises WorkerGone."""
        from json import loads

        process = self._process
        assert process is not None
        assert process.stdout is not None
        while b"\n" not in self._received:
            some = await process.stdout.receive_some()
            if not some:
                await self.close()
                raise WorkerGone
            self._received += some
        line, _, self._received = self._received.partition(b"\n")
        answer: dict[str, Any] = loads(line)
        return answer

    async def _running_process(self) -> trio.Process:
        if self._process is None:
            self._received = b""
            try:
                self._process = await trio.lowlevel.open_process(
                    [sys.executable, "-P", "-m", "storage.worker"],
                    stdin=-1,
                    stdout=-1,
                    env=ALLOCATOR | os.environ | {"PYTHONPATH": PACKAGES},
                    # Ctrl-C is the broker's affair, which ends this process when it has ended its own work.
                    start_new_session=True,
                )
            except OSError as error:  # no descriptor, no memory, or no interpreter there any more
                raise WorkerGone(f"the worker process cannot be started: {error}") from error
        return self._process

    async def close(self) -> None:
        """Let the process end; nothing happens if there is none."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with trio.CancelScope(shield=True):
            await process.stdin.aclose()
            await process.stdout.aclose()
            with trio.move_on_after(GRACE_SECONDS):
                await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
