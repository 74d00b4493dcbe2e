"""Members of a consumer group that note what they committed, with any client.

A member takes records, then commits them before it takes more.  What was committed is noted for
good; what was taken but not committed when a partition is taken away is forgotten, since somebody
else will get it.
"""

import threading
from collections import Counter, defaultdict

from compat.python_clients import CLIENTS
from compat.scenarios.python.client import CommitFailed, Committed, Consumer, Partition, TakenRecord
from compat.scenarios.python.members import Member

TAKE_COUNT = 20


class Ledger:
    """What all members of a group committed: offsets by partition, with how often."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._committed: Counter[tuple[int, int]] = Counter()
        self.failures: list[BaseException] = []

    def note(self, taken: dict[Partition, list[int]]) -> None:
        with self._lock:
            for partition, offsets in taken.items():
                self._committed.update((partition.number, offset) for offset in offsets)

    @property
    def count(self) -> int:
        """Records that were committed at least once."""
        with self._lock:
            return len(self._committed)

    def repeated(self) -> list[tuple[int, int]]:
        with self._lock:
            return [place for place, times in self._committed.items() if times > 1]


class CommittingMember(Member):
    """Commits what each poll gave before the next one."""

    def __init__(self, consumer: Consumer, topic: str, ledger: Ledger) -> None:
        super().__init__(consumer, [topic], poll_records_max=TAKE_COUNT)
        self.ledger = ledger
        self.uncommitted: defaultdict[Partition, list[int]] = defaultdict(list)

    def run(self) -> None:
        super().run()
        if self.failure is not None:
            self.ledger.failures.append(self.failure)

    def handle(self, consumer: Consumer, records: list[TakenRecord]) -> None:
        for record in records:
            self.uncommitted[Partition(record.topic, record.place.partition)].append(record.place.offset)
        if not self.uncommitted:
            return
        try:
            consumer.commit(
                {partition: Committed(offsets[-1] + 1) for partition, offsets in self.uncommitted.items()}
            )
        except CommitFailed:
            return  # the group is rebalancing: tried again, or forgotten with the partition
        self.ledger.note(self.uncommitted)
        self.uncommitted.clear()

    def lost(self, partitions: set[Partition]) -> None:
        super().lost(partitions)
        for partition in partitions:
            self.uncommitted.pop(partition, None)


def new_member(
    client: str, address: str, topic: str, group: str, ledger: Ledger, *, cooperative: bool = False
) -> CommittingMember:
    """A member that joins when it is started."""
    consumer = CLIENTS[client].consumer(address, group=group, cooperative=cooperative)
    return CommittingMember(consumer, topic, ledger)
