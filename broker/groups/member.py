"""One member of a classic group."""

from typing import TYPE_CHECKING, Any

from broker.groups.requests import Joining, Protocols

if TYPE_CHECKING:
    from broker.coordination.tickets import Ticket
    from protocol.stored.group_records import MemberMetadata


class Member:
    """Its identity, what it offers, and what it waits for.

    ``assignment`` is stored, and changes when a record is applied; so are identity and timeouts as of
    the group's last record.  Everything else is soft: ``protocols`` beyond the chosen one, the tickets,
    the session's deadline (steady time; None while the group owes the member an answer).  ``is_new``
    until its first generation is known: it cannot send heartbeats before.
    """

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "join_ticket",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_deadline_ms",
        "session_timeout_ms",
        "sync_ticket",
    )

    def __init__(
        self,
        member_id: str,
        *,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = False
        self.session_deadline_ms: int | None = None
        self.join_ticket: Ticket[Any] | None = None
        self.sync_ticket: Ticket[Any] | None = None

    @classmethod
    def joining(cls, member_id: str, joining: Joining) -> "Member":
        """The member that a request describes."""
        member = cls(
            member_id,
            instance_id=joining.instance_id,
            client_id=joining.client_id,
            client_host=joining.client_host,
            session_timeout_ms=joining.session_timeout_ms,
            rebalance_timeout_ms=joining.rebalance_timeout_ms,
            protocols=joining.protocols,
        )
        member.is_new = True
        return member

    @classmethod
    def stored(cls, stored: "MemberMetadata", protocol: str | None) -> "Member":
        """The member that a record describes.  Of its protocols only the chosen one is known."""
        return cls(
            stored.member_id,
            instance_id=stored.group_instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            session_timeout_ms=stored.session_timeout,
            rebalance_timeout_ms=(
                stored.session_timeout if stored.rebalance_timeout == -1 else stored.rebalance_timeout
            ),
            protocols=() if protocol is None else ((protocol, stored.subscription),),
            assignment=stored.assignment,
        )

    def heir(self, member_id: str) -> "Member":
        """The same static member under a new id (KIP-345): client id and host stay as they were."""
        return Member(
            member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            protocols=self.protocols,
            assignment=self.assignment,
        )

    @property
    def protocol_names(self) -> list[str]:
        return [name for name, _ in self.protocols]

    def metadata(self, protocol: str | None) -> bytes:
        """What the member said for ``protocol``; empty if it does not offer it."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        return b""

    @property
    def is_waiting(self) -> bool:
        """The group owes it an answer, so its silence means nothing."""
        return self.join_ticket is not None or self.sync_ticket is not None
