"""Scenes that chance makes up, from a seed: what nobody thought of, and in every order."""

from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any, Final, TypeAlias

from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.golden.controller.play import Play, directory

BROKERS: Final = 5
STEPS: Final = 120

Action: TypeAlias = Callable[[], Awaitable[None]]


class RandomScene:
    """A handful of brokers, and topics with two or three replicas on them."""

    def __init__(self, play: Play, seed: int) -> None:
        self._play = play
        self._chance = Random(seed)
        self._brokers = [10_000 + 10 * seed + index for index in range(BROKERS)]
        self._seed = seed
        self._made = 0
        self._topics: list[str] = []
        self._let_go: set[int] = set()
        """Brokers that may come back as others: their session was ended, or never begun."""

    async def perform(self) -> None:
        for broker_id in self._brokers:
            await self._play.register(broker_id, log_dirs=self._directories(broker_id))
            await self._say(broker_id)
        await self._make()
        kinds, weights = zip(*self.actions(), strict=True)
        for _ in range(STEPS):
            await self._chance.choices(kinds, weights)[0]()

    def actions(self) -> Sequence[tuple[Action, int]]:
        """What may happen, and how often."""
        return (
            (self._beat, 6),
            (self._fence, 6),
            (self._shut_down, 4),
            (self._return, 4),
            (self._propose, 16),
            (self._make, 2),
            (self._delete, 1),
            (self._move, 6),
            (self._elect, 4),
            (self._set, 2),
            (self._place, 2),
            (self._fail, 1),
            (self._cordon, 1),
            (self._unregister, 1),
        )

    def _directories(self, broker_id: int) -> list[bytes]:
        return [directory(broker_id), directory(broker_id, 1)][: 1 + broker_id % 2]

    def _broker(self) -> int:
        return self._chance.choice(self._brokers)

    async def _say(self, broker_id: int, **wishes: Any) -> Any:
        """Twice: Kafka forgets how far a broker has read whenever its registration changes."""
        answer = await self._play.beat(broker_id, **wishes)
        if not answer.is_fenced and not wishes.get("want_shut_down"):
            await self._play.beat(broker_id)
        return answer

    def _some_brokers(self, count: int) -> list[int]:
        return self._chance.sample(self._brokers, count)

    def _partition(self) -> tuple[str, int]:
        topic = self._chance.choice(self._topics)
        topic_id = self._play.topics[topic]
        return topic, self._chance.choice(
            [index for owner, index in self._play.partitions if owner == topic_id]
        )

    async def _beat(self) -> None:
        await self._say(self._broker())

    async def _fence(self) -> None:
        await self._say(self._broker(), want_fence=True)

    async def _shut_down(self) -> None:
        broker_id = self._broker()
        answer = await self._say(broker_id, want_shut_down=True)
        if answer.should_shut_down:
            self._let_go.add(broker_id)

    async def _return(self) -> None:
        """As after a clean stop, or a crash: Kafka lets a session end by time alone, so by way of leaving."""
        broker_id = self._broker()
        await self._say(broker_id, want_fence=True, want_shut_down=True)
        await self._play.ask(UnregisterBrokerRequest(broker_id=broker_id), 0)
        is_clean = self._chance.random() < 0.3
        epoch = self._play.epochs.get(broker_id, -1) if is_clean else -1
        await self._play.register(
            broker_id, log_dirs=self._directories(broker_id), previous_broker_epoch=epoch
        )
        if self._chance.random() < 0.7:
            await self._say(broker_id)

    async def _propose(self) -> None:
        if not self._topics:
            return
        topic, index = self._partition()
        known = self._play.partitions[self._play.topics[topic], index]
        if known.leader < 0:
            return
        others = [replica for replica in known.replicas if replica != known.leader]
        isr = [known.leader, *self._chance.sample(others, self._chance.randrange(len(others) + 1))]
        await self._play.propose(
            topic, isr, index=index, recovering=known.is_recovering and self._chance.random() < 0.5
        )

    async def _make(self) -> None:
        self._made += 1
        topic = f"chance-{self._seed}-{self._made}"
        factor = self._chance.choice((1, 2, 2, 3, 3))
        settings = {}
        if self._chance.random() < 0.6:
            settings["min__insync__replicas"] = str(self._chance.randint(1, 3))
        if self._chance.random() < 0.2:
            settings["unclean__leader__election__enable"] = "true"
        count = self._chance.randint(1, 3)
        await self._play.make(topic, *(self._some_brokers(factor) for _ in range(count)), **settings)
        if topic in self._play.topics:
            self._topics.append(topic)

    async def _delete(self) -> None:
        if len(self._topics) > 1:
            topic = self._topics.pop(self._chance.randrange(len(self._topics)))
            request = DeleteTopicsRequest(
                topics=[DeleteTopicState(topic_id=self._play.topics[topic], name=None)], timeout_ms=10_000
            )
            await self._play.ask(request, 6)

    async def _move(self) -> None:
        if not self._topics:
            return
        topic, index = self._partition()
        known = self._play.partitions[self._play.topics[topic], index]
        if known.leader < 0:
            return  # Kafka's controller falls over a last leader that has no replica any more
        # A broker that is to leave again before it has come keeps Kafka waiting without end.
        gives_up = known.is_reassigning or self._chance.random() < 0.25
        target = None if gives_up else self._some_brokers(self._chance.randint(1, 3))
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=10_000,
            topics=[
                ReassignableTopic(
                    name=topic, partitions=[ReassignablePartition(partition_index=index, replicas=target)]
                )
            ],
        )
        await self._play.ask(request, 0)

    async def _elect(self) -> None:
        if not self._topics:
            return
        topic, index = self._partition()
        request = ElectLeadersRequest(
            election_type=self._chance.randrange(2),
            topic_partitions=[TopicPartitions(topic=topic, partitions=[index])],
            timeout_ms=10_000,
        )
        await self._play.ask(request, 2)

    async def _set(self) -> None:
        if not self._topics:
            return
        # Not the minimum in sync: Kafka elects where a broker was eligible before that was changed.
        value = self._chance.choice(("true", "false"))
        change = AlterableConfig(name="unclean.leader.election.enable", value=value)
        resource = AlterConfigsResource(
            resource_type=2, resource_name=self._chance.choice(self._topics), configs=[change]
        )
        await self._play.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)

    async def _place(self) -> None:
        if not self._topics:
            return
        topic, index = self._partition()
        if self._play.partitions[self._play.topics[topic], index].leader < 0:
            return  # ours lets it be led at once, if its directory is found; Kafka waits for the next start
        broker_id = self._broker()
        partition = AssignReplicasToDirsRequestPartitionData(partition_index=index)
        placed = AssignReplicasToDirsRequestDirectoryData(
            id=directory(broker_id, self._chance.randrange(2)),
            topics=[
                AssignReplicasToDirsRequestTopicData(
                    topic_id=self._play.topics[topic], partitions=[partition]
                )
            ],
        )
        request = AssignReplicasToDirsRequest(
            broker_id=broker_id, broker_epoch=self._play.epochs.get(broker_id, 0), directories=[placed]
        )
        await self._play.ask(request, 0)

    async def _fail(self) -> None:
        """The second directory of a broker that has two; one without any is not to be.

        Not in the moment in which it is unfenced: Kafka makes it leader of what lies there.
        """
        broker_id = self._broker()
        await self._say(broker_id)
        await self._say(broker_id, offline_log_dirs=[directory(broker_id, 1)])

    async def _cordon(self) -> None:
        broker_id = self._broker()
        cordoned = self._directories(broker_id)[: self._chance.randrange(3)]
        await self._say(broker_id, cordoned_log_dirs=cordoned)

    async def _unregister(self) -> None:
        broker_id = self._broker()
        await self._play.ask(UnregisterBrokerRequest(broker_id=broker_id), 0)


async def perform_by_chance(play: Play, seed: int) -> None:
    await play.scene(f"chance {seed}")
    await RandomScene(play, seed).perform()
