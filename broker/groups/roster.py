"""The members of a classic group: who they are, what they offer together, and who of them waits."""

from collections.abc import Iterable, Iterator
from typing import Any

from broker.coordination.decision import Decision
from broker.coordination.tickets import Ticket
from broker.groups.member import Member
from broker.groups.protocol_choice import choose_protocol
from broker.groups.requests import Joined, Protocols, Synced
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from protocol.stored.consumer_protocol import ConsumerProtocolSubscription


class Roster:
    """Iterates over members, those first who have been there longest.

    Invariants: no two members share an instance id; ``joined_count`` members have a ticket to join.
    """

    def __init__(self, members: Iterable[Member] = ()) -> None:
        self.by_id: dict[str, Member] = {}
        self.static_ids: dict[str, str] = {}
        """Member id by instance id."""
        self.joined_count = 0
        self._support: dict[str, int] = {}
        """How many members offer each protocol."""
        for member in members:
            self.add(member)

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[Member]:
        return iter(self.by_id.values())

    def __contains__(self, member_id: str) -> bool:
        return member_id in self.by_id

    def __getitem__(self, member_id: str) -> Member:
        return self.by_id[member_id]

    def get(self, member_id: str) -> Member | None:
        return self.by_id.get(member_id)

    def add(self, member: Member) -> None:
        self.by_id[member.member_id] = member
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id
        self.joined_count += member.join_ticket is not None
        self._count(member.protocols, 1)

    def remove(self, member: Member) -> None:
        """Forget a member.  Whoever waits in its name has been answered."""
        assert not member.is_waiting, f"{member.member_id} is owed an answer"
        del self.by_id[member.member_id]
        if member.instance_id is not None:
            del self.static_ids[member.instance_id]
        self._count(member.protocols, -1)

    def check(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Whether this is a member, under the instance id that it claims, if it claims one."""
        if instance_id is not None:
            known = self.static_ids.get(instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.by_id else ErrorCode.UNKNOWN_MEMBER_ID

    # What they offer

    def change_protocols(self, member: Member, protocols: Protocols) -> None:
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, 1)

    def all_support_one_of(self, protocols: Protocols) -> bool:
        """Whether every member offers at least one that is among ``protocols``, and the same one."""
        everybody = len(self.by_id)
        return any(self._support.get(name, 0) == everybody for name, _ in protocols)

    def choose_protocol(self) -> str:
        return choose_protocol([[name for name, _ in member.protocols] for member in self])

    def subscribed_topics(self, protocol: str | None) -> frozenset[str] | None:
        """What consumers read, by their metadata for ``protocol``; None if it cannot be understood."""
        if protocol is None:
            return None if self.by_id else frozenset()
        topics: set[str] = set()
        try:
            for member in self:
                topics.update(read_subscribed_topics(member.metadata(protocol)))
        except DecodeError:
            return None
        return frozenset(topics)

    def rebalance_timeout_ms(self) -> int:
        """How long members may take: as long as the most patient of them allows."""
        return max((member.rebalance_timeout_ms for member in self), default=0)

    def _count(self, protocols: Protocols, change: int) -> None:
        support = self._support
        for name, _ in protocols:
            count = support.get(name, 0) + change
            if count:
                support[name] = count
            else:
                del support[name]

    # Who waits

    @property
    def all_have_joined(self) -> bool:
        return self.joined_count == len(self.by_id)

    def first_joined(self) -> Member | None:
        """Of those who wait for the next generation, the one that has been a member longest."""
        return next((member for member in self if member.join_ticket is not None), None)

    def wait_to_join(self, member: Member, ticket: Ticket[Joined]) -> None:
        assert member.join_ticket is None, "only one request waits in a member's name"
        member.join_ticket = ticket
        self.joined_count += 1

    def answer_join(self, member: Member, joined: Joined, decision: Decision) -> None:
        """Tell whoever waits to join in this member's name, if anybody does."""
        if member.join_ticket is not None:
            decision.reply(member.join_ticket, joined)
            member.join_ticket = None
            self.joined_count -= 1

    def answer_sync(self, member: Member, synced: Synced, decision: Decision) -> bool:
        """Tell whoever waits for this member's assignment; whether anybody did."""
        if member.sync_ticket is None:
            return False
        decision.reply(member.sync_ticket, synced)
        member.sync_ticket = None
        return True

    def waiting_tickets(self) -> Iterator[Ticket[Any]]:
        for member in self:
            if member.join_ticket is not None:
                yield member.join_ticket
            if member.sync_ticket is not None:
                yield member.sync_ticket


def read_subscribed_topics(metadata: bytes) -> list[str]:
    """The topics in a consumer's metadata.  Behind the version, every version begins as version 0 does."""
    if len(metadata) < 2:
        raise DecodeError("a consumer's metadata has no version")
    return ConsumerProtocolSubscription.decode_from(metadata, 2, 0)[0].topics
