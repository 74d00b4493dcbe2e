"""Requests of operators that chance makes up, from a seed: many of them are wrong in some way."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from protocol.messages import alter_client_quotas as quotas
from protocol.messages import alter_configs as complete
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from protocol.uuids import ZERO_UUID
from tests.golden.controller.play import Play

BROKERS: Final = 3
STEPS: Final = 120

TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)

Values = Mapping[str, Sequence[str]]

LISTS: Final[Mapping[int, Values]] = {
    TOPIC: {
        "cleanup.policy": ("compact", "delete", "compact,delete", "", ",", "delete,", "x", " delete"),
        "leader.replication.throttled.replicas": ("0:1", "*", "0:1,", "none", "1:1,0:1", "x", ""),
        "follower.replication.throttled.replicas": ("0:1", "*", "0:1,1:2,,"),
    },
    BROKER: {"log.cleanup.policy": ("compact", "delete", "delete,"), "cordoned.log.dirs": ("/a", "/b")},
    METRICS: {"metrics": ("a", "b,", "a,b"), "match": ("client_id=a",)},
    GROUP: {"streams.rack.aware.assignment.tags": ("a",)},
}
"""Settings that are lists, by type of resource, with values right and wrong."""

OTHERS: Final[Mapping[int, Values]] = {
    TOPIC: {
        "retention.ms": ("5", "-1", "-2", " 7 ", "x", "99999999999999999999", "1.5"),
        "min.insync.replicas": ("1", "2", "0", " 3", "x"),
        "segment.bytes": ("1048576", "10", "5"),
        "min.compaction.lag.ms": ("5", "100"),
        "max.compaction.lag.ms": ("1", "50"),
        "unclean.leader.election.enable": ("true", "TRUE", "no", " false "),
        "compression.type": ("zstd", "gzip", "nope"),
        "message.timestamp.type": ("CreateTime", "x"),
        "segment.ms": ("1", "0"),
        "remote.storage.enable": ("true", "false"),
        "local.retention.ms": ("-2", "100"),
        "remote.log.copy.disable": ("true",),
        "remote.log.delete.on.disable": ("true",),
        "message.format.version": ("3.0",),
        "no.such.setting": ("1",),
    },
    BROKER: {
        "min.insync.replicas": ("1", "2"),
        "num.io.threads": ("9",),
        "cordoned.log.dirs": ("/a", "/a,/b", "", " /b , /a"),
        "unclean.leader.election.enable": ("true", "false"),
        "log.cleanup.policy": ("compact", "delete"),
        "no.such.setting": ("1",),
    },
    METRICS: {
        "interval.ms": ("100", "1", "5000"),
        "metrics": ("", "a,b"),
        "match": ("client_id=x", "x=y", "client_id"),
        "no.such.setting": ("1",),
    },
    GROUP: {
        "consumer.session.timeout.ms": ("45000", "50000", "1"),
        "consumer.heartbeat.interval.ms": ("5000", "x"),
        "share.auto.offset.reset": ("earliest", "by_duration:PT1H", "x"),
        "share.isolation.level": ("read_committed", "x"),
        "share.record.lock.duration.ms": ("30000", "1"),
        "streams.num.standby.replicas": ("1", "9"),
        "no.such.setting": ("1",),
    },
}

QUOTA_ENTITIES: Final = (
    ("user",),
    ("client-id",),
    ("user", "client-id"),
    ("ip",),
    ("ip", "user"),
    ("no",),
    (),
)
QUOTAS: Final = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
    "no_such_quota",
)
QUOTA_VALUES: Final = (1.0, 5.5, 0.0, -1.0, 1e20, 2.0**31, 100.0000001, 3e9, float("inf"), 9.3e18)

METADATA_LEVELS: Final[Sequence[int]] = (-1, 25, 26, 26, 28, 29, 29, 30, 31, 32, 33)
"""Kafka's controller supports those from 7 on, and says so where one is neither its nor ours."""
OTHER_LEVELS: Final[Sequence[int]] = (0, 1, 2, -1, 3)
OTHER_FEATURES: Final = (
    "group.version",
    "transaction.version",
    "share.version",
    "streams.version",
    "eligible.leader.replicas.version",
    "no.such.version",
)


class RandomRequests:
    """Three brokers, and some topics on all of them."""

    def __init__(self, play: Play, seed: int) -> None:
        self._play = play
        self._chance = Random(seed)
        self._brokers = [20_000 + 10 * seed + index for index in range(BROKERS)]
        self._topics = [f"requests{seed}-a", f"requests{seed}.b", f"requests{seed}_c"]
        self._more_topics = [f"requests{seed}-{number}" for number in range(5)]
        self._name = f"name-{seed}"
        """Of somebody who may have a quota."""

    async def perform(self) -> None:
        await self._play.come(*self._brokers)
        for topic in self._topics[:2]:
            await self._play.make(topic, self._brokers, self._brokers[::-1])
        kinds = (
            (self._alter, 3),
            (self._alter_completely, 1),
            (self._limit, 2),
            (self._give_password, 1),
            (self._create, 1),
            (self._delete, 1),
            (self._grow, 1),
            (self._change_level, 1),
        )
        actions, weights = zip(*kinds, strict=True)
        for _ in range(STEPS):
            await self._chance.choices(actions, weights)[0]()

    # Settings

    async def _alter(self) -> None:
        kind, name = self._resource()
        setting, operation, value = self._change(kind)
        change = AlterableConfig(
            name=setting, config_operation=operation, value=None if operation == DELETE else value
        )
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=self._seldom())
        await self._play.ask(request, 1)

    async def _alter_completely(self) -> None:
        """Not of a broker: what is not named any more goes in an order of the controller's own."""
        kind, name = self._resource()
        if kind == BROKER:
            return
        setting, _, value = self._change(kind)
        change = complete.AlterableConfig(name=setting, value=value)
        resource = complete.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])
        await self._play.ask(complete.AlterConfigsRequest(resources=[resource]), 2)

    def _resource(self) -> tuple[int, str]:
        kind = self._chance.choice((TOPIC, TOPIC, TOPIC, TOPIC, BROKER, METRICS, GROUP))
        names: Mapping[int, Sequence[str]] = {
            TOPIC: (*self._topics, *self._topics[:2], "nobody-has-this", "", "a bad name!"),
            BROKER: ("", *map(str, self._brokers), "1", "9", "-1", "x", "+1", " 1"),
            METRICS: ("m", ""),
            GROUP: ("g", ""),
        }
        return kind, self._chance.choice(names[kind])

    def _change(self, kind: int) -> tuple[str, int, str]:
        """A setting, what is to become of it, and a value for that."""
        is_list = self._chance.random() < 0.4
        settings = LISTS[kind] if is_list else OTHERS[kind]
        operations: Sequence[int] = (SET, SET, SET, SET, DELETE, APPEND, SUBTRACT)
        if is_list:
            operations = (APPEND, APPEND, SUBTRACT, SET, DELETE)
        setting = self._chance.choice(list(settings))
        return setting, self._chance.choice(operations), self._chance.choice(settings[setting])

    # Quotas, credentials and levels

    async def _limit(self) -> None:
        entity = [
            quotas.EntityData(
                entity_type=kind,
                entity_name=None if kind == "ip" else self._chance.choice((None, "", self._name)),
            )
            for kind in self._chance.choice(QUOTA_ENTITIES)
        ]
        operation = quotas.OpData(
            key=self._chance.choice(QUOTAS),
            value=self._chance.choice(QUOTA_VALUES),
            remove=self._chance.random() < 0.2,
        )
        entry = quotas.AlterClientQuotasRequestEntryData(entity=entity, ops=[operation])
        request = quotas.AlterClientQuotasRequest(entries=[entry], validate_only=self._seldom())
        await self._play.ask(request, 1)

    async def _give_password(self) -> None:
        choice = self._chance.choice
        deletions = [
            ScramCredentialDeletion(name=choice(("u", "v", "")), mechanism=choice((1, 2, 0, 9)))
            for _ in range(self._chance.randrange(3))
        ]
        upsertions = [
            ScramCredentialUpsertion(
                name=choice(("u", "v", "w", "")),
                mechanism=choice((1, 2, 2, 0)),
                iterations=choice((4096, 8192, 100, 20_000)),
                salt=b"salt",
                salted_password=choice((b"password", b"password", b"")),
            )
            for _ in range(self._chance.randrange(3))
        ]
        await self._play.ask(AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions), 0)

    async def _change_level(self) -> None:
        choice = self._chance.choice
        updates = {}
        for _ in range(choice((1, 1, 1, 2, 3))):
            is_metadata = self._chance.random() < 0.4
            feature = "metadata.version" if is_metadata else choice(OTHER_FEATURES)
            upgrade_types = (1, 1, 2, 2, 3, 0)
            updates[feature] = FeatureUpdateKey(
                feature=feature,
                max_version_level=choice(METADATA_LEVELS if is_metadata else OTHER_LEVELS),
                upgrade_type=choice(upgrade_types),
            )
        request = UpdateFeaturesRequest(
            feature_updates=list(updates.values()),
            timeout_ms=10_000,
            validate_only=self._chance.random() < 0.8,
        )
        await self._play.ask(request, choice((1, 2)))

    # Topics

    async def _create(self) -> None:
        near = [topic.replace("-", ".").replace("_", ".") for topic in self._topics]  # these collide
        names = [*self._topics, *self._more_topics, *near, "", "..", "x" * 250, "__cluster_metadata"]
        wanted = [
            self._new_topic(name) for name in self._chance.sample(names, self._chance.choice((1, 1, 2)))
        ]
        request = CreateTopicsRequest(
            topics=wanted, timeout_ms=10_000, validate_only=self._chance.random() < 0.3
        )
        await self._play.ask(request, 7)

    def _new_topic(self, name: str) -> CreatableTopic:
        """Its replicas are named, right or wrong: to place them is a matter of chance."""
        choice = self._chance.choice
        topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
        if self._chance.random() < 0.2:
            counts = ((0, 1), (-2, 1), (1, 0), (1, -5), (10_001, 1), (1, 30_000))
            topic.num_partitions, topic.replication_factor = choice(counts)
        else:
            topic.assignments = [
                CreatableReplicaAssignment(
                    partition_index=choice((index, index, index, 5)), broker_ids=self._some_brokers()
                )
                for index in range(self._chance.randint(1, 2))
            ]
            if len({each.partition_index for each in topic.assignments}) < len(topic.assignments):
                topic.assignments.pop()
            topic.num_partitions = choice((-1,) * 9 + (1,))
        if self._chance.random() < 0.3:
            setting, _, value = self._change(TOPIC)
            topic.configs = [CreatableTopicConfig(name=setting, value=choice((value, value, value, None)))]
        return topic

    def _some_brokers(self) -> list[int]:
        """One of them is none, and one may come twice."""
        return self._chance.sample([*self._brokers, *self._brokers, 7], self._chance.randint(0, 3))

    async def _delete(self) -> None:
        wanted = []
        for _ in range(self._chance.randint(1, 3)):
            name = self._chance.choice((self._topics[2], *self._more_topics, "nobody-has-this"))
            topic_id = self._play.topics.get(name, ZERO_UUID)
            by_name, by_id = (name, ZERO_UUID), (None, topic_id)
            told = self._chance.choice((by_name, by_id, (name, topic_id)))
            wanted.append(DeleteTopicState(name=told[0], topic_id=told[1]))
        await self._play.ask(DeleteTopicsRequest(topics=wanted, timeout_ms=10_000), 6)

    async def _grow(self) -> None:
        wanted = CreatePartitionsTopic(
            name=self._chance.choice((*self._topics, "nobody-has-this", "")),
            count=self._chance.choice((-1, 0, 1, 2, 3, 4)),
            assignments=[
                CreatePartitionsAssignment(broker_ids=self._some_brokers())
                for _ in range(self._chance.randrange(3))
            ],
        )
        request = CreatePartitionsRequest(
            topics=[wanted], timeout_ms=10_000, validate_only=self._chance.random() < 0.3
        )
        await self._play.ask(request, 3)

    def _seldom(self) -> bool:
        return self._chance.random() < 0.1


async def perform_requests(play: Play, seed: int) -> None:
    await play.scene(f"requests {seed}")
    await RandomRequests(play, seed).perform()
