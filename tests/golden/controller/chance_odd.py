"""Scenes that chance makes up, in which brokers say what they should not, and operators are in a hurry."""

from collections.abc import Sequence
from typing import Any

from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from protocol.messages.elect_leaders import ElectLeadersRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.golden.controller.chance import Action, RandomScene
from tests.golden.controller.play import CONTROLLER_ID, Partition, Play


class OddScene(RandomScene):
    """The other one's, and more.

    Now and then Kafka's controller parts from ours where it forgets how far a broker has read whenever its
    registration changes, and now and then it falls.
    """

    def actions(self) -> Sequence[tuple[Action, int]]:
        return (
            *super().actions(),
            (self._say_something_odd, 6),
            (self._propose_something_odd, 4),
            (self._register_again, 2),
            (self._move_again, 3),
            (self._elect_everywhere, 1),
            (self._grow, 2),
            (self._set_for_all, 2),
        )

    async def perform(self) -> None:
        await super().perform()
        await self._allow_unclean("", None)  # the next scene's brokers would have it, too

    async def _say_something_odd(self) -> None:
        broker_id, chance = self._broker(), self._chance
        wishes: dict[str, Any] = {
            "want_fence": chance.random() < 0.4,
            "want_shut_down": chance.random() < 0.4,
        }
        if chance.random() < 0.2:
            wishes["current_metadata_offset"] = 0
        if chance.random() < 0.1:
            wishes["epoch"] = 7
        if chance.random() < 0.2:
            wishes["cordoned_log_dirs"] = self._directories(broker_id)[: chance.randrange(3)]
        await self._say(broker_id, **wishes)

    async def _propose_something_odd(self) -> None:
        if not self._topics:
            return
        chance = self._chance
        topic, index = self._partition()
        known = self._known(topic, index)
        isr = self._some_brokers(chance.randint(1, 3))
        kind = chance.randrange(7)
        odd: dict[str, Any] = {}
        if kind == 0:
            odd["newer_leader_epoch"] = chance.choice((-1, 1))
        elif kind == 1:
            odd["newer_partition_epoch"] = chance.choice((-1, 1))
        elif kind == 2:
            odd["recovering"] = True
        elif kind == 3:
            isr = [*isr, isr[0]]
        elif kind == 4:
            odd["epochs"] = [chance.choice((-1, 5)) for _ in isr]
        elif kind == 5:
            odd["version"] = 2
            isr = list(dict.fromkeys((known.leader, *isr)))
        if kind == 6 or known.leader < 0:
            odd["broker_id"] = self._broker()
        await self._play.propose(topic, isr, index=index, **odd)

    async def _register_again(self) -> None:
        broker_id = self._broker()
        directories = self._directories(broker_id)[: self._chance.randint(1, 2)]
        await self._play.register(broker_id, again=True, log_dirs=directories)

    async def _move_again(self) -> None:
        """Whoever is coming still comes: who leaves again before that keeps Kafka waiting without end."""
        if not self._topics:
            return
        topic, index = self._partition()
        known = self._known(topic, index)
        if known.leader < 0:
            return
        target = self._some_brokers(self._chance.randint(1, 3))
        if known.is_reassigning:
            target = list(dict.fromkeys((*known.adding, *target)))
            self._chance.shuffle(target)
        partition = ReassignablePartition(partition_index=index, replicas=target)
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=10_000,
            allow_replication_factor_change=self._chance.random() < 0.5,
            topics=[ReassignableTopic(name=topic, partitions=[partition])],
        )
        await self._play.ask(request, 1)

    async def _elect_everywhere(self) -> None:
        request = ElectLeadersRequest(
            election_type=self._chance.randrange(2), topic_partitions=None, timeout_ms=10_000
        )
        await self._play.ask(request, 2)

    async def _grow(self) -> None:
        """Replicas are named, as many as all others have: to place them is a matter of chance."""
        if not self._topics:
            return
        topic = self._chance.choice(self._topics)
        topic_id = self._play.topics[topic]
        present = [partition for (owner, _), partition in self._play.partitions.items() if owner == topic_id]
        if len({len(partition.replicas) for partition in present}) > 1:
            return  # which of them counts depends on what has become of them
        more = self._chance.randint(0, 2)
        factor = self._chance.choice((*[len(present[0].replicas)] * 3, 2))
        assignments = [CreatePartitionsAssignment(broker_ids=self._some_brokers(factor)) for _ in range(more)]
        wanted = CreatePartitionsTopic(name=topic, count=len(present) + more, assignments=assignments)
        await self._play.ask(CreatePartitionsRequest(topics=[wanted], timeout_ms=10_000), 3)

    async def _set_for_all(self) -> None:
        node = self._chance.choice(("", "", str(CONTROLLER_ID), str(self._broker())))
        await self._allow_unclean(node, self._chance.choice(("true", "false", "TRUE", None)))

    async def _allow_unclean(self, node: str, value: str | None) -> None:
        change = AlterableConfig(
            name="unclean.leader.election.enable", value=value, config_operation=int(value is None)
        )
        resource = AlterConfigsResource(resource_type=4, resource_name=node, configs=[change])
        await self._play.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)

    def _known(self, topic: str, index: int) -> Partition:
        return self._play.partitions[self._play.topics[topic], index]


async def perform_odd(play: Play, seed: int) -> None:
    await play.scene(f"odd {seed}")
    await OddScene(play, seed).perform()
