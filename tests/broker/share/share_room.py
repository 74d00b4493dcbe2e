"""Share groups in one partition of ``__consumer_offsets``; the share coordinator does what a test says."""

from collections.abc import Callable, Sequence

from broker.coordination.decision import Decision
from broker.coordination.tickets import Ticket
from broker.groups.requests import Beaten, ConsumerGroupDescription
from broker.share import group_admin, group_commands
from broker.share.group import Initialize, ShareGroup
from broker.share.group_admin import Begun
from broker.share.group_commands import ShareBeat
from protocol.error_codes import ErrorCode
from tests.broker.groups.consumer_rooms import ConsumerRoom


class ShareRoom(ConsumerRoom):
    """``sharers`` is the group that the tests are about."""

    @property
    def sharers(self) -> ShareGroup:
        group = self.machine.groups["group"]
        assert isinstance(group, ShareGroup)
        return group

    def share(
        self, member_id: str, epoch: int, topics: Sequence[str] | None = None, *, group_id: str = "group"
    ) -> Beaten:
        asked = ShareBeat(member_id, epoch, None, "client", "/10.0.0.1", topics)
        ticket = Ticket(Beaten)
        self.ask(ticket, lambda machine, now: group_commands.beat(machine, group_id, asked, ticket, now))
        return ticket.outcome

    def entered_share(self, member_id: str, *topics: str) -> Beaten:
        beaten = self.share(member_id, 0, topics)
        assert beaten.error is ErrorCode.NONE, beaten
        return beaten

    def initialize(self) -> list[Initialize]:
        """Have the share coordinator make the state that it was asked for."""
        return self._answer(group_commands.initialized)

    def fail(self) -> list[Initialize]:
        """Have the share coordinator refuse to make the state that it was asked for."""
        return self._answer(group_commands.not_initialized)

    def _answer(self, command: Callable[..., Decision]) -> list[Initialize]:
        wanted, self.performed[:] = list(self.performed), []
        for each in wanted:
            self._answer_one(each, command)
        return wanted

    def _answer_one(self, wanted: Initialize, command: Callable[..., Decision]) -> None:
        partitions = {topic_id: set(offsets) for topic_id, offsets in wanted.start_offsets.items()}
        ticket: Ticket[ErrorCode] = Ticket(lambda code: code)
        self.ask(ticket, lambda machine, _: command(machine, wanted.group_id, partitions, ticket))
        assert ticket.outcome is ErrorCode.NONE

    def assigned(self, member_id: str) -> dict[str, list[int]] | None:
        return self.named(self.sharers.members[member_id].assigned)

    def settle_share(self, *member_ids: str) -> None:
        """Let members send heartbeats until nothing moves any more."""
        for _ in range(20):
            self.pass_ms(1_000)
            before = self.log.log_end
            self.initialize()
            for member_id in member_ids:
                beaten = self.share(member_id, self.sharers.members[member_id].member_epoch)
                assert beaten.error is ErrorCode.NONE, beaten
            if self.log.log_end == before:
                return
        raise AssertionError("the group does not come to rest")

    def begin_altering(self, offset: int, *topics: str) -> Begun:
        """An operator moves partition 0 of these topics, and the share coordinator has not done it yet."""
        start_offsets = {self.cluster.image.topics[name].id: {0: offset} for name in topics}
        ticket = Ticket(Begun)
        self.ask(
            ticket, lambda machine, _: group_admin.begin_altering(machine, "group", start_offsets, ticket)
        )
        return ticket.outcome

    def begin_deleting(self, *topics: str) -> Begun:
        """An operator deletes what is kept of these topics, which the share coordinator does not do yet."""
        ticket = Ticket(Begun)
        self.ask(ticket, lambda machine, _: group_admin.begin_deleting(machine, "group", topics, ticket))
        return ticket.outcome

    def describe_share(self, group_id: str = "group") -> ConsumerGroupDescription:
        ticket = Ticket(lambda code: ConsumerGroupDescription(group_id, code))
        self.ask(ticket, lambda machine, _: group_commands.describe(machine, group_id, ticket))
        return ticket.outcome
