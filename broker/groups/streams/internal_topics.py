"""Topics that streams applications keep for themselves, and the broker makes for them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from broker.controller.automatic_topics import topic_defaults
from broker.controller.decision import Decision
from broker.controller.topics import BY_DEFAULT, NewTopic, TopicResult, create_topics
from broker.groups.java_order import in_java_order
from broker.groups.streams.configured import InternalTopic
from broker.groups.streams.statuses import StreamsStatus
from broker.metadata.image import MetadataImage
from protocol.errors import KafkaError
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse

if TYPE_CHECKING:
    from broker.services import Services

ERRORS_KEPT_MAX: Final = 1000
"""Topics that could not be made, of which members are told why; the oldest are forgotten."""

_ERRORS_TOLD_MAX: Final = 3


class InternalTopics:
    """Makes topics behind heartbeats; one that could not be made is left alone for a while.

    A topic under way is not made twice, since every member of a group asks for it.
    """

    def __init__(self, services: "Services") -> None:
        self._services = services
        self._under_way: set[str] = set()
        self._errors: dict[str, tuple[int, str]] = {}
        """Why a topic could not be made, and until when (steady ms) it is not tried again."""

    def make(
        self, topics: Mapping[str, InternalTopic], response: StreamsGroupHeartbeatResponse, retry_ms: int
    ) -> None:
        """Begin to make these topics, and tell in the response why some could not be made before."""
        self._forget_old_errors()
        wanted = [
            NewTopic(
                topic.name,
                topic.partition_count,
                topic.replication_factor or BY_DEFAULT,
                settings=topic.configs,
            )
            for topic in topics.values()
            if topic.name not in self._errors and topic.name not in self._under_way
        ]
        if wanted:
            self._create(wanted, retry_ms)
        failed = in_java_order(name for name in topics if name in self._errors)
        for status in response.status or ():
            if failed and status.status_code == StreamsStatus.MISSING_INTERNAL_TOPICS:
                status.status_detail += f"; Creation failed: {self._tell(failed)}."

    def _tell(self, failed: list[str]) -> str:
        told = ", ".join(f"{name} ({self._errors[name][1]})" for name in failed[:_ERRORS_TOLD_MAX])
        more = len(failed) - _ERRORS_TOLD_MAX
        return f"{told} and {more} more" if more > 0 else told

    def _create(self, wanted: list[NewTopic], retry_ms: int) -> None:
        names = [topic.name for topic in wanted]
        self._under_way.update(names)

        def command(image: MetadataImage) -> Decision[dict[str, TopicResult]]:
            return create_topics(image, wanted, topic_defaults(self._services))

        def done(outcome: dict[str, TopicResult] | KafkaError) -> None:
            self._under_way.difference_update(names)
            until_ms = self._now_ms() + retry_ms
            for name in names:
                result = outcome if isinstance(outcome, KafkaError) else outcome[name]
                if isinstance(result, KafkaError):
                    self._note(name, result, until_ms)

        self._services.controller.submit(command, done)

    def _note(self, name: str, error: KafkaError, until_ms: int) -> None:
        self._services.log.warn_seldom(f"internal topic {name} could not be created: {error}")
        self._errors.pop(name, None)
        self._errors[name] = until_ms, error.message or error.code.name
        for oldest in list(self._errors)[: len(self._errors) - ERRORS_KEPT_MAX]:
            del self._errors[oldest]

    def _forget_old_errors(self) -> None:
        now_ms = self._now_ms()
        for name in [name for name, (until_ms, _) in self._errors.items() if until_ms <= now_ms]:
            del self._errors[name]

    def _now_ms(self) -> int:
        return int(self._services.clock.current_time() * 1000)
