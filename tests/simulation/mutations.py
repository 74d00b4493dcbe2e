"""Mistakes that a cluster could make: each of them must make some history fail.

What none of the invariants sees would be a hole in them.
"""

from typing import Any

from broker.controller import brokers, elections
from broker.controller.elections import ClusterRules
from broker.metadata.image import PartitionImage
from broker.partitions import read
from broker.partitions.leader import Leader, WhenCommitted
from broker.partitions.replication import IsrProposal, Replication
from storage.partition_log import PartitionLog
from storage.producer_state import ProducerState
from tests.simulation.histories import TOPIC, History, make_history, play
from tests.support.mistakes import Mistakes, Patch

MISTAKES = Mistakes()
mistake, made = MISTAKES.note, MISTAKES.made


def history_that_shows(name: str, tried_max: int) -> tuple[History, BaseException] | None:
    """The first one of so many that fails with a mistake, and not without it; and how it fails."""
    for number in range(1, tried_max + 1):
        history = make_history(str(number))
        with made(name):
            failure = play(history).failure
        if failure is not None and play(history).failure is None:
            return history, failure
    return None


# Replication


@mistake
def acks_all_is_answered_at_once(patch: Patch) -> None:
    right = Leader.when_committed

    def when_committed(leader: Leader, end_offset: int, callback: WhenCommitted) -> None:
        if leader.topic == TOPIC:
            callback(None)
        else:  # a coordinator would call itself again and again
            right(leader, end_offset, callback)

    patch(Leader, "when_committed", when_committed)


@mistake
def the_high_watermark_is_the_leaders_log_end(patch: Patch) -> None:
    patch(Replication, "high_watermark", lambda replication, own_end, **others: own_end)


@mistake
def the_leader_lets_followers_join_by_itself(patch: Patch) -> None:
    right = Replication.propose_expansion

    def propose_expansion(
        replication: Replication, broker_id: int, high_watermark: int
    ) -> IsrProposal | None:
        proposal = right(replication, broker_id, high_watermark)
        if proposal is not None:
            replication.isr |= {broker_id}
        return proposal

    patch(Replication, "propose_expansion", propose_expansion)


@mistake
def the_leader_lets_late_followers_go_by_itself(patch: Patch) -> None:
    right = Replication.propose_shrinking

    def propose_shrinking(replication: Replication, log_end: int, now_ms: int) -> IsrProposal | None:
        proposal = right(replication, log_end, now_ms)
        if proposal is not None:
            replication.isr = frozenset(proposal.isr)
        return proposal

    patch(Replication, "propose_shrinking", propose_shrinking)


@mistake
def replicas_are_not_compared(patch: Patch) -> None:
    """A follower goes on at its log end, whatever it has."""
    patch(read, "find_divergence", lambda replica, wanted: None)


@mistake
def a_new_leader_takes_all_that_it_has_for_committed(patch: Patch) -> None:
    right = Leader.__init__

    def init(leader: Leader, log: PartitionLog, **others: Any) -> None:
        right(leader, log, **others)
        log.advance_high_watermark(log.log_end)

    patch(Leader, "__init__", init)


# Elections


@mistake
def whoever_is_alive_may_lead(patch: Patch) -> None:
    right = elections._elect

    def elect(partition: PartitionImage, replicas: tuple[int, ...], *others: Any) -> tuple[int, bool]:
        rules: ClusterRules = others[-1]
        for replica in (partition.leader, *replicas):
            if rules.may_lead(replica, partition):
                return replica, False
        return right(partition, replicas, *others)

    patch(elections, "_elect", elect)


@mistake
def a_broker_that_lost_its_power_stays_in_sync(patch: Patch) -> None:
    right = elections.broker_changes

    def broker_changes(*arguments: Any, unclean: int | None = None, **others: Any) -> Any:
        return right(*arguments, unclean=None, **others)

    patch(brokers, "broker_changes", broker_changes)


# Producers


@mistake
def sequences_are_not_checked(patch: Patch) -> None:
    patch(ProducerState, "check", lambda *_, **__: None)


@mistake
def transactions_are_stable_at_once(patch: Patch) -> None:
    patch(PartitionLog, "last_stable", property(lambda log: log.high_watermark))
