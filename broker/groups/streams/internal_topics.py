"""Topics that streams applications keep for themselves, and the broker makes for them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from broker.controller.automatic_topics import BY_DEFAULT, refusal
from broker.groups.java_order import in_java_order
from broker.groups.streams.configured import InternalTopic
from broker.groups.streams.statuses import StreamsStatus
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
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
            CreatableTopic(
                name=topic.name,
                num_partitions=topic.partition_count,
                replication_factor=topic.replication_factor or BY_DEFAULT,
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in topic.configs.items()],
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

    def _create(self, wanted: list[CreatableTopic], retry_ms: int) -> None:
        names = [topic.name for topic in wanted]
        self._under_way.update(names)

        def done(answer: CreateTopicsResponse | KafkaError) -> None:
            self._under_way.difference_update(names)
            until_ms = self._now_ms() + retry_ms
            for name in names:
                error = answer if isinstance(answer, KafkaError) else refusal(answer, name)
                # One that exists was made for another heartbeat, and is not known here yet.
                if error is not None and error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    self._note(name, error, until_ms)

        timeout_ms = self._services.config.get("request.timeout.ms")
        self._services.channel.submit(CreateTopicsRequest(topics=wanted, timeout_ms=timeout_ms), done)

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
