"""What a scenario of Spring Kafka plays on: its topics, its group and the applications that it starts."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from compat.python_confluent_kafka.client import ConfluentKafka
from compat.scenarios.python.client import FETCH_WAIT_MS, HEARTBEAT_MS, SESSION_MS
from compat.scenarios.python.passage import Listener, Passage
from compat.scenarios.python.stage import Stage
from compat.spring.program import CLIENT, Applications, running_applications


class SpringKafka(ConfluentKafka):
    """What applications hear is sent, and what they send is taken, by librdkafka."""

    name = CLIENT

    def __init__(self, version: str) -> None:
        self.version = version


class Application(Listener):
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

    def close(self) -> None:
        """Stop its listeners, if it is not closed yet."""
        if self._runs:
            self._runs = False
            self.call("close")


class Scene(Passage):
    """The topics and the group of a scenario, and its applications."""

    def __init__(self, stage: Stage, applications: Applications) -> None:
        super().__init__(stage)
        self._applications = applications

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
            self.running.callback(application.close)
        return application

    @contextmanager
    def elsewhere(self) -> Iterator[Applications]:
        """A process of its own, which may crash."""
        with running_applications() as applications:
            yield applications
