"""A member of a group that goes on polling while its scenario looks at it from outside."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import TypeVar

from compat.scenarios.python.client import LONG_TIMEOUT_SECONDS, Consumer, Partition, TakenRecord

POLL_SECONDS = 0.1

Answer = TypeVar("Answer")


class Member(threading.Thread):
    """Polls one consumer in a thread of its own: no library's consumer may be used by two.

    ``taken`` grows while it runs.  ``owned`` is what the group gave it and did not take away again.
    """

    def __init__(
        self,
        consumer: Consumer,
        topics: Sequence[str] = (),
        *,
        pattern: str | None = None,
        poll_seconds: float = POLL_SECONDS,
        poll_records_max: int = 5000,
    ) -> None:
        super().__init__(daemon=True)
        self.taken: list[TakenRecord] = []
        self.owned: set[Partition] = set()
        self.ever_lost: set[Partition] = set()
        self.failure: BaseException | None = None
        self._consumer = consumer
        self._topics = topics
        self._pattern = pattern
        self._poll_seconds = poll_seconds
        self._poll_records_max = poll_records_max
        self._asked: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._ended = threading.Event()

    def run(self) -> None:
        try:
            try:
                self._consumer.subscribe(
                    self._topics, pattern=self._pattern, gained=self.gained, lost=self.lost
                )
                while not self._ended.is_set():
                    records = self._consumer.poll(self._poll_seconds, self._poll_records_max)
                    self.handle(self._consumer, records)
                    self._answer()
            finally:
                self._consumer.close()
        except BaseException as error:
            self.failure = error

    def handle(self, consumer: Consumer, records: list[TakenRecord]) -> None:
        """Called with what each poll gave; for those who do more than collect."""
        self.taken += records

    def gained(self, partitions: set[Partition]) -> None:
        self.owned = self.owned | partitions

    def lost(self, partitions: set[Partition]) -> None:
        self.owned = self.owned - partitions
        self.ever_lost |= partitions

    def ask(self, question: Callable[[Consumer], Answer]) -> Answer:
        """What ``question`` gives for the consumer, asked between two polls."""
        answer: Future[Answer] = Future()

        def put() -> None:
            try:
                answer.set_result(question(self._consumer))
            except BaseException as error:
                answer.set_exception(error)

        self._asked.put(put)
        return answer.result(LONG_TIMEOUT_SECONDS)

    def _answer(self) -> None:
        try:
            while True:
                self._asked.get_nowait()()
        except Empty:
            pass

    def leave(self) -> None:
        """Leave the group, if the member is not static, and close.  Raises what went wrong meanwhile."""
        self._ended.set()
        self.join(LONG_TIMEOUT_SECONDS)
        if self.is_alive():
            raise TimeoutError("a member of a group did not end")
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
