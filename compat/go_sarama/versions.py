"""sarama, told to expect each version of Kafka that it knows: ``python -m compat.go_sarama.versions``."""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from compat.go_driver.client import SARAMA
from compat.scenarios.catalogue import Area, Catalogue, Scenario
from compat.scenarios.python.checks import Unexpected, expect, expect_that
from compat.scenarios.python.client import NotOffered, Partition, Record
from compat.scenarios.python.driver import Repertoire, main, reason_of
from compat.scenarios.python.registry import Play
from compat.scenarios.python.stage import Stage, partitions_of, values, wait_for
from compat.scenarios.remote.client import RemoteClient
from compat.scenarios.remote.process import RemoteProcess

CLIENT: Final = "sarama (each version)"
VERSIONS_FILE = Path(__file__).with_name("versions.txt")
"""Of the release of sarama that is pinned."""

TITLE: Final = (
    "sarama, told to expect each version of Kafka that it knows, of which Kafka 4.4 does not serve the oldest"
    " any more:"
)
DOES: Final = """Asks for a topic, consumes it alone and in a group, produces to it, also in transactions,
creates, lists and deletes topics, lists groups; what sarama does not do is left out."""
HOLDS: Final = "Everything works."

REFUSED_BY_SARAMA: Final = "sarama.ConfigurationError"
"""It says itself that a version cannot do something."""

SENT: Final = [Record(b"%d" % number, b"key") for number in range(10)]


@cache
def known_versions() -> list[str]:
    return VERSIONS_FILE.read_text().split()


@cache
def versions_catalogue() -> Catalogue:
    """A scenario for each version, an area for each major one."""
    scenarios = {
        version: Scenario(
            name=version,
            area=version.partition(".")[0],
            title=f"Expect Kafka {version}",
            does=DOES,
            holds=HOLDS,
        )
        for version in known_versions()
    }
    majors = dict.fromkeys(scenario.area for scenario in scenarios.values())
    areas = tuple(Area(major, f"Kafka {major}.x") for major in majors)
    return Catalogue(TITLE, areas, scenarios)


class OldSarama(RemoteClient):
    """sarama, told to expect one version."""

    def __init__(self, process: RemoteProcess, version: str) -> None:
        super().__init__(process)
        self._version = version

    def _open(
        self, operation: str, like: Callable[..., Any], address: str, options: dict[str, Any], **more: Any
    ) -> int:
        return super()._open(operation, like, address, options, **more, version=self._version)


def connects(stage: Stage, topic: str) -> None:
    expect(stage.consumer().partitions_of(topic), {0}, "partitions")


def produces(stage: Stage, topic: str) -> None:
    places = stage.send(topic, SENT, codec="gzip")
    expect([place.offset for place in places], list(range(10, 20)), "offsets")


def consumes(stage: Stage, topic: str) -> None:
    taken = stage.take(topic, 10)[:10]
    expect(values(taken), values_of(SENT), "values")


def finds_times(stage: Stage, topic: str) -> None:
    partition = Partition(topic, 0)
    expect(stage.consumer().find_times({partition: 1}), {partition: 0}, "offset at a time")


def consumes_in_a_group(stage: Stage, topic: str) -> None:
    group = stage.new_name("group")
    member = stage.member(group, [topic])
    wait_for(lambda: len(member.taken) >= 10, "the group gets the records", member)
    expect(values(member.taken[:10]), values_of(SENT), "values")
    member.ask(lambda consumer: consumer.commit())
    committed = member.ask(lambda consumer: consumer.committed(partitions_of(topic, 1)))[Partition(topic, 0)]
    expect_that(committed is not None and committed.offset >= 10, f"{committed} is committed")
    expect_that(group in stage.admin.list_groups(), "the group is not listed")


def transacts(stage: Stage, topic: str) -> None:
    producer = stage.transactional_producer(stage.new_name("transaction"))
    producer.begin()
    producer.send(topic, SENT)
    producer.commit()


def administers(stage: Stage, _: str) -> None:
    topic = stage.new_name("topic")
    stage.admin.create_topic(topic, 2)
    wait_for(lambda: topic in stage.admin.list_topics(), "the topic is listed")
    expect(len(stage.admin.describe_topic(topic)), 2, "partitions")
    stage.admin.delete_topic(topic)


STEPS: Final = (
    connects,
    consumes,
    finds_times,
    consumes_in_a_group,
    produces,
    transacts,
    administers,
)


def values_of(records: list[Record]) -> list[bytes | None]:
    return [record.value for record in records]


def play(version: str, process: RemoteProcess, stage: Stage) -> None:
    """Take all steps with the version, on a topic that sarama as it comes has made."""
    topic = stage.topic()
    stage.send(topic, SENT)
    failures: dict[str, list[str]] = {}
    for step in STEPS:
        try:
            with Stage(OldSarama(process, version), stage.address) as old:
                step(old, topic)
        except NotOffered:
            continue
        except Exception as error:
            reason = reason_of(error).replace(topic, "the topic")
            if REFUSED_BY_SARAMA not in reason:
                failures.setdefault(reason, []).append(step.__name__.replace("_", " "))
    if failures:
        raise Unexpected("; ".join(f"{', '.join(steps)}: {reason}" for reason, steps in failures.items()))


def plays(process: RemoteProcess) -> dict[str, Play]:
    """A function for each version."""
    return {version: partial(play, version, process) for version in known_versions()}


if __name__ == "__main__":
    process = RemoteProcess(SARAMA.command())
    sarama = RemoteClient(process)
    sarama.name = CLIENT
    main(sarama, None, Repertoire(versions_catalogue().scenarios, plays(process)))
