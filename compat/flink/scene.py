"""What a scenario of Flink plays on: its topics, its group and the jobs that it starts."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from compat.flink.program import CLIENT, Cluster, running_cluster
from compat.python_confluent_kafka.client import ConfluentKafka
from compat.scenarios.python.client import FETCH_WAIT_MS
from compat.scenarios.python.passage import Listener, Passage
from compat.scenarios.python.stage import Stage, wait_for
from compat.scenarios.remote.process import RemoteError

TRANSACTION_MS: Final = 600_000
"""Longer than any scenario: who goes on after a crash must not wait until a transaction has timed out."""

DISCOVERY_MS: Final = 200
"""How often a source looks for partitions."""

NOT_YET: Final = "Not all required tasks are currently running"
"""What Flink says of a checkpoint that it cannot take before a job has started."""

ENDED: Final = ("FINISHED", "FAILED", "CANCELED")


class Flink(ConfluentKafka):
    """What jobs hear is sent, and what they send is taken, by librdkafka."""

    name = CLIENT

    def __init__(self, version: str) -> None:
        self.version = version


class Job(Listener):
    """One job that runs; see ``program/Job.java``."""

    def __init__(self, cluster: Cluster, name: str, **told: Any) -> None:
        self.name = name
        self._cluster = cluster
        cluster.call("start", name, **told)

    def heard(self) -> list[dict[str, Any]]:
        return list(self._cluster.call("heard", self.name))

    def state(self) -> str:
        """In Flink's words.  Raises RemoteError if the job has failed for good."""
        state = str(self._cluster.call("state", self.name))
        if state == "FAILED":
            raise RemoteError(self._cluster.call("failure", self.name))
        return state

    def wait_until_finished(self) -> None:
        wait_for(lambda: self.state() == "FINISHED", "the job has finished")

    def checkpoint(self) -> str:
        """Take one, once all tasks run, and where it is kept."""
        taken: list[str] = []

        def is_taken() -> bool:
            try:
                taken.append(self._cluster.call("checkpoint", self.name))
            except RemoteError as error:
                if NOT_YET not in str(error):
                    raise
                return False
            return True

        wait_for(is_taken, "a checkpoint is taken")
        return taken[0]

    def stop(self) -> str:
        """End it with a savepoint, and where that is kept."""
        return str(self._cluster.call("stop", self.name))

    def cancel(self) -> None:
        """End it as it is, if it has not ended."""
        if self._cluster.call("state", self.name) not in ENDED:
            self._cluster.call("cancel", self.name)


class Scene(Passage):
    """The topics and the group of a scenario, and its jobs."""

    def __init__(self, stage: Stage, cluster: Cluster) -> None:
        super().__init__(stage)
        self._cluster = cluster

    def start(
        self,
        *,
        cluster: Cluster | None = None,
        topic: str | None = None,
        pattern: str | None = None,
        since: str | int = "earliest",
        until: str | int | None = None,
        consumer: dict[str, str] | None = None,
        parallelism: int = 1,
        counts: bool = False,
        output: str | None = None,
        transactions: str | None = None,
        restarts: int = 0,
        hangs: bool = False,
        checkpoint: str | None = None,
    ) -> Job:
        """One of another cluster ends with that.

        ``since`` and ``until`` are times in milliseconds, or words; ``transactions`` is how the connector
        names them, where it writes exactly once.
        """
        job = Job(
            cluster or self._cluster,
            self.stage.new_name("job"),
            address=self.stage.address,
            group=self.group,
            topic=topic or self.input,
            pattern=pattern,
            since=since,
            until=until,
            consumer={
                "fetch.max.wait.ms": str(FETCH_WAIT_MS),
                "partition.discovery.interval.ms": str(DISCOVERY_MS),
                **(consumer or {}),
            },
            producer={"transaction.timeout.ms": str(TRANSACTION_MS)},
            parallelism=parallelism,
            counts=counts,
            output=output,
            transactions=transactions,
            restarts=restarts,
            hangs=hangs,
            checkpoint=checkpoint,
        )
        if cluster is None:
            self.running.callback(job.cancel)
        return job

    @contextmanager
    def elsewhere(self) -> Iterator[Cluster]:
        """A cluster in a process of its own, which may crash; its checkpoints are there afterwards."""
        with running_cluster(self._cluster.folder / self.stage.new_name("elsewhere")) as cluster:
            yield cluster
