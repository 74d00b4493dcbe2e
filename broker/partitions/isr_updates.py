"""Asking the controller for other in-sync sets (AlterPartition), and looking for followers that are late."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import trio

from broker.life.own_epoch import own_broker_epoch
from broker.metadata.image import BrokerImage
from broker.partitions.leader import Leader
from broker.partitions.replication import IsrProposal, Replication
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    BrokerState,
)
from protocol.schema import Message

if TYPE_CHECKING:
    from broker.partitions.manager import PartitionManager
    from broker.services import Services

RETRY_SECONDS: Final = 0.05
"""Before a request is tried again that the controller has refused as a whole."""

ANSWER_SECONDS: Final = 30.0
"""After this the request is made again, from what is to be proposed by then."""

NAMED_MAX: Final = 3
"""Partitions that a line of the log names."""

TopicIdPartition = tuple[bytes, int]


class IsrUpdates:
    """The proposals of all leaders of this broker.

    One request is under way at a time.  Meanwhile others gather, at most one for each partition, and go
    together.  There is no time limit: a proposal stays until the controller has decided it, or the image
    has said more.
    """

    def __init__(self, services: "Services", manager: "PartitionManager") -> None:
        self._services = services
        self._manager = manager
        self._undecided: dict[TopicIdPartition, tuple[Leader, IsrProposal]] = {}
        self._is_asking = False
        self._lag_max_ms: int = services.config.get("replica.lag.time.max.ms")

    def new_replication(self) -> Replication:
        """For a leader that is not alone."""
        return Replication(self._services.node_id, self._brokers, lag_max_ms=self._lag_max_ms)

    def _brokers(self) -> Mapping[int, BrokerImage]:
        return self._services.image.brokers

    async def keep_shrinking(self) -> None:
        """Look for late followers, for ever: one is noticed after one and a half times the limit at most."""
        while True:
            await trio.sleep(max(self._lag_max_ms / 2, 1) / 1000)
            late: dict[int, list[str]] = {}
            for leader in self._manager.open_leaders:
                if leader.ended is None:
                    for broker_id in leader.shrink_isr():
                        late.setdefault(broker_id, []).append(f"{leader.topic}-{leader.partition}")
            for broker_id, names in late.items():
                self._services.log.warn(
                    f"broker {broker_id} has not caught up for {self._lag_max_ms} ms in {_named(names)}"
                )

    def propose(self, leader: Leader, proposal: IsrProposal) -> None:
        """Let the controller decide, and tell ``leader``."""
        key = leader.topic_id, leader.partition
        if key in self._undecided:  # of an earlier leadership, and perhaps under way
            leader.isr_refused(proposal, ErrorCode.OPERATION_NOT_ATTEMPTED)
            return
        self._undecided[key] = leader, proposal
        self._ask_soon()

    def _ask_soon(self) -> None:
        if not self._is_asking:
            self._is_asking = True
            self._manager.start_soon(self._ask)

    async def _ask(self) -> None:
        """Ask until nothing is undecided any longer."""
        try:
            while self._undecided:
                asked = dict(self._undecided)
                try:
                    answer = await self._services.channel.ask(
                        self._request(asked), timeout_seconds=ANSWER_SECONDS
                    )
                except KafkaError:
                    await trio.sleep(RETRY_SECONDS)
                    continue
                if not self._heed(answer, asked):
                    await trio.sleep(RETRY_SECONDS)
        finally:
            self._is_asking = False

    def _request(self, asked: Mapping[TopicIdPartition, tuple[Leader, IsrProposal]]) -> AlterPartitionRequest:
        node_id = self._services.node_id
        topics: dict[bytes, AlterPartitionRequestTopicData] = {}
        for (topic_id, partition), (_, proposal) in asked.items():
            topic = topics.setdefault(topic_id, AlterPartitionRequestTopicData(topic_id=topic_id))
            topic.partitions.append(
                AlterPartitionRequestPartitionData(
                    partition_index=partition,
                    leader_epoch=proposal.leader_epoch,
                    new_isr_with_epochs=[
                        BrokerState(broker_id=broker_id, broker_epoch=epoch)
                        for broker_id, epoch in zip(proposal.isr, proposal.broker_epochs, strict=True)
                    ],
                    partition_epoch=proposal.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=node_id,
            broker_epoch=own_broker_epoch(self._services),
            topics=list(topics.values()),
        )

    def _heed(self, answer: Message, asked: Mapping[TopicIdPartition, tuple[Leader, IsrProposal]]) -> bool:
        """Tell the leaders; False if something is to be tried again before long."""
        assert isinstance(answer, AlterPartitionResponse)
        if answer.error_code:
            self._services.log.warn_seldom(
                f"the controller refuses changes of in-sync sets: error {answer.error_code}",
                about="AlterPartition",
            )
            return False
        changed: list[str] = []
        for topic in answer.topics:
            for outcome in topic.partitions:
                key = topic.topic_id, outcome.partition_index
                if key in asked and self._undecided.pop(key, None) is not None:
                    leader, proposal = asked[key]
                    if leader.ended is None and self._tell(leader, proposal, outcome):
                        changed.append(f"{leader.topic}-{leader.partition} ({_listed(outcome.isr)})")
        if changed:
            self._services.log.info(f"replicas in sync: {_named(changed)}")
        return not self._undecided.keys() & asked.keys()

    def _tell(
        self, leader: Leader, proposal: IsrProposal, outcome: AlterPartitionResponsePartitionData
    ) -> bool:
        """Whether the set is another one now."""
        if outcome.error_code:
            code = ErrorCode(outcome.error_code)
            self._services.log.info(
                f"{leader.topic}-{leader.partition}: {_listed(proposal.isr)} cannot be the replicas in sync: "
                f"{code.name}"
            )
            leader.isr_refused(proposal, code)
            return False
        leader.isr_accepted(
            proposal,
            outcome.isr,
            leader_epoch=outcome.leader_epoch,
            partition_epoch=outcome.partition_epoch,
        )
        return True


def _listed(broker_ids: Sequence[int]) -> str:
    return ", ".join(map(str, broker_ids))


def _named(names: Sequence[str]) -> str:
    """A few of them by name."""
    if len(names) <= NAMED_MAX:
        return "; ".join(names)
    return f"{'; '.join(names[:NAMED_MAX])} and {len(names) - NAMED_MAX} others"
