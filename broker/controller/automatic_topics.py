"""Topics that nobody created by hand: those a client asked about, and the broker's own."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from broker.metadata import topic_names
from broker.metadata.image import MetadataImage
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError

if TYPE_CHECKING:
    from broker.controller.topics import TopicDefaults
    from broker.metadata.replay import MetadataChanges
    from broker.network.call import Call
    from broker.services import Services
    from protocol.messages.create_topics import CreatableTopic, CreateTopicsResponse

NO_SETTINGS: Final[Mapping[str, str]] = MappingProxyType({})

BY_DEFAULT: Final = -1
"""Partitions or replicas of a new topic: as many as the controller's settings say."""

Done = Callable[[KafkaError | None], None]


def topic_defaults(services: "Services") -> "TopicDefaults":
    """What a new topic gets from this broker's settings."""
    from broker.config.resources import check_topic
    from broker.controller.topics import TopicDefaults  # here: a broker that starts makes no topics

    config = services.config
    return TopicDefaults(
        partition_count=config.get("num.partitions"),
        replication_factor=config.get("default.replication.factor"),
        check_settings=lambda _, settings: check_topic(config, settings),
        new_id=services.identifiers.uuid,
        chance=services.identifiers.random,
    )


class AutomaticTopics:
    """Creates topics behind the requests that need them; a topic under way is not created twice."""

    def __init__(self, services: "Services") -> None:
        self._services = services
        self._under_way: dict[str, list[Done]] = {}
        self._unseen: dict[str, list[Done]] = {}
        """Who waits for topics that the controller has made, until this broker hears of them."""
        self._follows_images = False

    def create(self, names: Iterable[str], client: "Call | None" = None) -> None:
        """Begin to create these topics.  Who asks again later will find them, or that they cannot be made.

        ``client`` is the request behind which they are made: its sender's quota is asked.
        """
        for name in names:
            if name != topic_names.CLUSTER_METADATA:
                self.ensure(name, _ignore, client=client)

    def ensure(
        self,
        name: str,
        done: Done,
        settings: Mapping[str, str] = NO_SETTINGS,
        client: "Call | None" = None,
    ) -> None:
        """Call ``done`` when the topic exists, at once if it does, or with the reason why it cannot be made.

        The broker's own topics are made as its settings want them, all others with its defaults and with
        ``settings``.
        """
        if name in self._services.image.topics:
            done(None)
            return
        waiting = self._under_way.get(name)
        if waiting is not None:
            waiting.append(done)
            return
        self._under_way[name] = [done]

        from protocol.messages.create_topics import CreateTopicsRequest

        services = self._services
        services.channel.submit(
            CreateTopicsRequest(
                topics=[self._wanted(services.image, name, settings)],
                timeout_ms=services.config.get("request.timeout.ms"),
            ),
            lambda answer: self._finish(name, answer),
            client=client,
        )

    def _finish(self, name: str, answer: "CreateTopicsResponse | KafkaError") -> None:
        error = answer if isinstance(answer, KafkaError) else refusal(answer, name)
        if error is not None and error.code == ErrorCode.TOPIC_ALREADY_EXISTS:
            error = None
        if error is not None:
            self._services.log.warn_seldom(f"topic {name} could not be created automatically: {error}")
        waiting = self._under_way.pop(name)
        if error is None and name not in self._services.image.topics:
            self._follow_images()
            self._unseen.setdefault(name, []).extend(waiting)
            return
        for done in waiting:
            done(error)

    def _follow_images(self) -> None:
        if not self._follows_images:
            self._follows_images = True
            self._services.metadata.on_publish(self._published)

    def _published(self, image: MetadataImage, changes: "MetadataChanges") -> None:
        for name in [name for name in self._unseen if name in image.topics]:
            for done in self._unseen.pop(name):
                done(None)

    def _wanted(self, image: MetadataImage, name: str, settings: Mapping[str, str]) -> "CreatableTopic":
        get = self._services.config.get
        if name == topic_names.GROUP_OFFSETS:
            return _creatable(
                name,
                get("offsets.topic.num.partitions"),
                self._replicas(image, "offsets.topic.replication.factor"),
                {
                    "cleanup.policy": "compact",
                    "compression.type": "producer",
                    "segment.bytes": str(get("offsets.topic.segment.bytes")),
                },
            )
        if name == topic_names.TRANSACTION_STATE:
            return _creatable(
                name,
                get("transaction.state.log.num.partitions"),
                self._replicas(image, "transaction.state.log.replication.factor"),
                {
                    "cleanup.policy": "compact",
                    "compression.type": "uncompressed",
                    "min.insync.replicas": str(get("transaction.state.log.min.isr")),
                    "segment.bytes": str(get("transaction.state.log.segment.bytes")),
                    "unclean.leader.election.enable": "false",
                },
            )
        if name == topic_names.SHARE_GROUP_STATE:
            return _creatable(
                name,
                get("share.coordinator.state.topic.num.partitions"),
                self._replicas(image, "share.coordinator.state.topic.replication.factor"),
                {
                    "cleanup.policy": "delete",
                    "compression.type": "producer",
                    "min.insync.replicas": str(get("share.coordinator.state.topic.min.isr")),
                    "retention.ms": "-1",
                    "segment.bytes": str(get("share.coordinator.state.topic.segment.bytes")),
                },
            )
        is_set = self._services.config.is_set
        return _creatable(
            name,
            get("num.partitions") if is_set("num.partitions") else BY_DEFAULT,
            get("default.replication.factor") if is_set("default.replication.factor") else BY_DEFAULT,
            settings,
        )

    def _replicas(self, image: MetadataImage, setting: str) -> int:
        """Of one of the broker's own topics: where it is set, there is none before there are so many brokers.

        Kafka waits for three if nothing is set, and one node must work out of the box.  Brokers that are
        fenced count, as they do where replicas are placed: they may just be starting, or be away for a
        moment, and one replica would be too few for ever.
        """
        config = self._services.config
        wanted: int = config.get(setting)
        if config.is_set(setting):
            return wanted
        from broker.controller.topics import usable_brokers

        return max(1, min(wanted, len(usable_brokers(image))))


def _creatable(
    name: str, partition_count: int, replication_factor: int, settings: Mapping[str, str]
) -> "CreatableTopic":
    from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig

    return CreatableTopic(
        name=name,
        num_partitions=partition_count,
        replication_factor=replication_factor,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in settings.items()],
    )


def refusal(answer: "CreateTopicsResponse", name: str) -> KafkaError | None:
    """Why this topic of a CreateTopics request was not made; None if it was."""
    for topic in answer.topics:
        if topic.name == name and topic.error_code:
            return KafkaError(ErrorCode(topic.error_code), topic.error_message)
    return None


def _ignore(outcome: KafkaError | None) -> None:
    """Whoever wants to know asks for the topic again."""
