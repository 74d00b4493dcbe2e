"""Processes that check replicas side by side; each gets a new one when it is done with the last.

A worker reads files and answers over a pipe.  It ends when the pipe does, so that none outlives whoever
started it.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from storage.errors import StorageError
from storage.verification.facts import ReplicaFacts
from storage.verification.log_check import Moved
from storage.verification.read_only import ReadOnlyFileSystem
from storage.verification.replica import CheckedReplica
from storage.verification.verify import check_one

MOVED_AT_ONCE = 16 << 20
"""Bytes after which a worker says how far it is."""


class WorkerLost(StorageError):
    """A process that was checking a replica has ended; what it would have found, nobody knows."""


class Workers:
    """A fixed number of processes.  Use it in a ``with`` block, which ends them."""

    def __init__(self, count: int, moved: Moved) -> None:
        self._moved = moved
        self._processes: list[BaseProcess] = []
        self._idle: list[Connection] = []
        context = get_context("spawn")
        for _ in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self._processes.append(process)
            self._idle.append(ours)

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *exception: object) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()

    def check_all(self, replicas: Iterable[ReplicaFacts]) -> Iterator[CheckedReplica]:
        """What the checks come to, in the order of ``replicas``.  Raises WorkerLost."""
        waiting = deque(enumerate(replicas))
        busy: dict[Connection, int] = {}
        finished: dict[int, CheckedReplica] = {}
        due = 0
        names = {number: facts.path for number, facts in waiting}
        while waiting or busy:
            while waiting and self._idle:
                number, facts = waiting.popleft()
                connection = self._idle.pop()
                connection.send(facts)
                busy[connection] = number
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                try:
                    answer = ready.recv()
                except (EOFError, OSError):
                    raise WorkerLost(f"the process that checked {names[busy[ready]]} has ended") from None
                if isinstance(answer, int):
                    self._moved(answer)
                    continue
                finished[busy.pop(ready)] = answer
                self._idle.append(ready)
            while due in finished:
                yield finished.pop(due)
                due += 1


def _work(connection: Connection) -> None:
    """The life of a worker."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it decides
    file_system = ReadOnlyFileSystem()
    unsaid = 0

    def moved(count: int) -> None:
        nonlocal unsaid
        unsaid += count
        if unsaid >= MOVED_AT_ONCE:
            connection.send(unsaid)
            unsaid = 0

    try:
        while True:
            facts = connection.recv()
            answer = check_one(file_system, facts, moved)
            connection.send(answer)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
