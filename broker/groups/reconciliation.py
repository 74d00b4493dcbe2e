"""How a member moves towards its target: it gives up first, and gets what others have given up (KIP-848)."""

from collections.abc import Callable, Collection, Mapping, Sequence, Set

from broker.groups.consumer_member import ConsumerMember, MemberState, OwnedPartitions
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError

Claimed = Sequence[tuple[bytes, Sequence[int]]]
"""Topic ids and partitions that a member says it owns."""

Target = Mapping[bytes, Set[int]]
"""Topic ids and partitions that a member should own in the end."""


def claims_only(claimed: Claimed | None, owned: OwnedPartitions) -> bool:
    """Whether a member claims nothing beyond ``owned``; one that does not say what it has might."""
    if claimed is None:
        return False
    return all(
        topic_id in owned and all(partition in owned[topic_id] for partition in partitions)
        for topic_id, partitions in claimed
    )


def claims_any(claimed: Claimed | None, owned: OwnedPartitions) -> bool:
    """Whether a member still claims some of ``owned``; one that does not say what it has might."""
    if claimed is None:
        return True
    return any(
        topic_id in owned and any(partition in owned[topic_id] for partition in partitions)
        for topic_id, partitions in claimed
    )


class Reconciler:
    """Takes one step for one member, from what is true now.

    ``is_owned`` tells whether anybody holds a partition, be it that he has yet to give it up.
    ``topic_ids`` are those that the member reads now: it loses the others at once, whatever its target
    says, which may be older than its subscription.
    """

    def __init__(
        self,
        member: ConsumerMember,
        *,
        target_epoch: int,
        target: Target,
        topic_ids: Collection[bytes],
        claimed: Claimed | None,
        is_owned: Callable[[bytes, int], bool],
    ) -> None:
        self._member = member
        self._target_epoch = target_epoch
        self._target = target
        self._topic_ids = topic_ids
        self._claimed = claimed
        self._is_owned = is_owned

    def step(self, *, subscription_changed: bool) -> ConsumerMember:
        """The member as it is after this step; the same one if it cannot move."""
        member = self._member
        if member.state is MemberState.STABLE:
            if member.member_epoch != self._target_epoch:
                return self._approach(member.member_epoch)
            return self._drop_unsubscribed() if subscription_changed else member
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            if claims_any(self._claimed, member.revoking):
                return self._drop_unsubscribed() if subscription_changed else member
            return self._approach(member.member_epoch)
        if member.state is MemberState.UNRELEASED_PARTITIONS:
            return self._approach(member.member_epoch)
        if self._claimed is None or self._claimed:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin.",
            )
        return self._approach(self._target_epoch)

    def _approach(self, member_epoch: int) -> ConsumerMember:
        member = self._member
        kept: dict[bytes, dict[int, int]] = {}
        revoked: dict[bytes, dict[int, int]] = {}
        given: dict[bytes, list[int]] = {}
        waits = False
        for topic_id in dict.fromkeys((*self._target, *member.assigned)):
            wanted = self._target.get(topic_id, frozenset()) if topic_id in self._topic_ids else frozenset()
            owned = member.assigned.get(topic_id, {})
            stays = {partition: epoch for partition, epoch in owned.items() if partition in wanted}
            goes = {partition: epoch for partition, epoch in owned.items() if partition not in wanted}
            # What the member itself is about to give up is free for it: nobody else can hold it.
            revoking = member.revoking.get(topic_id, {})
            comes = []
            for partition in wanted:
                if partition in stays:
                    continue
                if partition not in revoking and self._is_owned(topic_id, partition):
                    waits = True
                else:
                    comes.append(partition)
            if stays:
                kept[topic_id] = stays
            if goes:
                revoked[topic_id] = goes
            if comes:
                given[topic_id] = comes
        if revoked and claims_any(self._claimed, revoked):
            return self._moved(member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
        for topic_id, partitions in given.items():
            kept.setdefault(topic_id, {}).update(dict.fromkeys(partitions, self._target_epoch))
        state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
        return self._moved(self._target_epoch, state, kept, {})

    def _drop_unsubscribed(self) -> ConsumerMember:
        """What the member does not read any more goes, while its target stands."""
        member = self._member
        gone = [topic_id for topic_id in member.assigned if topic_id not in self._topic_ids]
        if not gone:
            return member
        kept = {topic_id: of for topic_id, of in member.assigned.items() if topic_id in self._topic_ids}
        revoked = {topic_id: dict(of) for topic_id, of in member.revoking.items()}
        for topic_id in gone:
            revoked.setdefault(topic_id, {}).update(member.assigned[topic_id])
        if claims_any(self._claimed, revoked):
            return self._moved(member.member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
        return member._replace(previous_member_epoch=member.member_epoch, assigned=kept)

    def _moved(
        self,
        member_epoch: int,
        state: MemberState,
        assigned: Mapping[bytes, Mapping[int, int]],
        revoking: Mapping[bytes, Mapping[int, int]],
    ) -> ConsumerMember:
        return self._member._replace(
            member_epoch=member_epoch,
            previous_member_epoch=self._member.member_epoch,
            state=state,
            assigned=assigned,
            revoking=revoking,
        )
