"""What a scenario of Spring Kafka plays on: its topics, its group and the applications that it starts."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from compat.python_confluent_kafka.client import ConfluentKafka
from compat.scenarios.python.client import FETCH_WAIT_MS, HEARTBEAT_MS, SESSION_MS, Record
from compat.scenarios.python.records import START_MS
from compat.scenarios.python.stage import Stage, partitions_of, values, wait_for
from compat.spring.program import CLIENT, Applications, running_applications


class SpringKafka(ConfluentKafka):
    """What applications hear is sent, and what they send is taken, by librdkafka."""

    name = CLIENT

    def __init__(self, version: str) -> None:
        self.version = version


class Application:
    """One application that runs, with a configuration of ``program``."""

    def __init__(
        self, applications: Applications, name: str, configuration: str, **told: dict[str, str] | str
    ) -> None:
        self.name = name
        self._applications = applications
        self._runs = True
        applications.call("start", name, configuration=configuration, **told)

    def call(self, operation: str, **arguments: Any) -> Any:
        return self._applications.call(operation, self.name, **arguments)

    def heard(self) -> list[dict[str, Any]]:
        """What its listeners heard so far."""
        return list(self.call("heard"))

    def values(self) -> list[str]:
        return [each["value"] for each in self.heard()]

    def close(self) -> None:
        """Stop its listeners, if it is not closed yet."""
        if self._runs:
            self._runs = False
            self.call("close")


class Scene:
    """The topics and the group of a scenario, and its applications."""

    def __init__(self, stage: Stage, applications: Applications) -> None:
        self.stage = stage
        self.group = stage.new_name("group")
        self.input = stage.new_name("in")
        self.output = stage.new_name("out")
        self._applications = applications
        self._running = ExitStack()

    def __enter__(self) -> "Scene":
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def start(
        self,
        configuration: str,
        *,
        applications: Applications | None = None,
        consumer: dict[str, str] | None = None,
        producer: dict[str, str] | None = None,
        properties: dict[str, str] | None = None,
    ) -> Application:
        """One of another process ends with that."""
        soon = {
            "session.timeout.ms": str(SESSION_MS),
            "heartbeat.interval.ms": str(HEARTBEAT_MS),
        }
        application = Application(
            applications or self._applications,
            self.stage.new_name("application"),
            configuration,
            address=self.stage.address,
            consumer={"fetch.max.wait.ms": str(FETCH_WAIT_MS), **(soon if consumer is None else consumer)},
            producer=producer or {},
            properties={"group": self.group, "in": self.input, "out": self.output, **(properties or {})},
        )
        if applications is None:
            self._running.callback(application.close)
        return application

    def create(self, *names: str, partition_count: int = 1) -> None:
        for name in names:
            self.stage.topic(partition_count, name=name)

    def send(self, sent: Sequence[str], partition_count: int = 1) -> None:
        """One record for each, a second apart, to one partition after the other."""
        records = [
            Record(
                value.encode(),
                b"key",
                partition=number % partition_count,
                timestamp_ms=START_MS + 1000 * number,
            )
            for number, value in enumerate(sent)
        ]
        self.stage.send(self.input, records)

    def committed(self, partition_count: int = 1) -> list[int]:
        """How far the group is in each partition of the input; 0 where it has not begun."""
        found = self.stage.admin.group_offsets(self.group)
        return [
            found[each].offset if each in found else 0 for each in partitions_of(self.input, partition_count)
        ]

    def wait_until_committed(self, wanted: Sequence[int]) -> None:
        wait_for(lambda: self.committed(len(wanted)) == list(wanted), f"the group has committed {wanted}")

    def taken(self, topic: str, count_: int, *, committed_only: bool = True) -> list[str]:
        """The first values of a topic of one partition, and what there is behind them."""
        taken = self.stage.take(topic, count_, committed_only=committed_only)
        return [value.decode() for value in values(taken) if value is not None]

    @contextmanager
    def elsewhere(self) -> Iterator[Applications]:
        """A process of its own, which may crash."""
        with running_applications() as applications:
            yield applications
