"""Classic groups: JoinGroup, SyncGroup, Heartbeat and LeaveGroup, from the first member to the last."""

from typing import Any

from compat.oracle.conversation import conversation
from compat.oracle.talk import NAMELESS, ORACLE, Talk
from protocol.api_keys import ApiKey
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

MEMBERSHIP = (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP)
"""The versions of these rise together, as they do in clients."""

SINCE_STATIC_MEMBERS = "5+"
FIRST, SECOND = "first", "second"
STRANGER = "stranger"


def join(
    group: str,
    member_id: str = "",
    *,
    instance: str | None = None,
    protocols: tuple[str, ...] = ("range",),
    kind: str = "consumer",
    session_ms: int = 30_000,
    rebalance_ms: int = 30_000,
    about: str = "about me",
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=kind,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=about.encode()) for name in protocols],
    )


def sync(
    group: str,
    member_id: str,
    generation: int,
    *,
    instance: str | None = None,
    kind: str | None = "consumer",
    protocol: str | None = "range",
    **assignments: str,
) -> SyncGroupRequest:
    """``assignments`` are by member id."""
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=kind,
        protocol_name=protocol,
        assignments=[
            SyncGroupRequestAssignment(member_id=member, assignment=assignment.encode())
            for member, assignment in assignments.items()
        ],
    )


def heartbeat(group: str, member_id: str, generation: int, instance: str | None = None) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance
    )


def leave(talk: Talk, group: str, *members: str, instance: str | None = None) -> LeaveGroupRequest:
    """Until version 2 only one member leaves with a request."""
    if talk.version_of(ApiKey.LEAVE_GROUP) < 3:
        return LeaveGroupRequest(group_id=group, member_id=members[0])
    identities = [MemberIdentity(member_id=member, group_instance_id=instance) for member in members]
    return LeaveGroupRequest(group_id=group, members=identities)


def start_joining(talk: Talk, label: str, request: JoinGroupRequest, by: str = ORACLE) -> None:
    """Ask to join, and once more if the broker first hands out a member id (KIP-394)."""
    needs_id = talk.version_of(ApiKey.JOIN_GROUP) >= 4
    if needs_id and not request.member_id and request.group_instance_id is None:
        request.member_id = talk.ask(f"{label}, without id", request, by=by).member_id
    talk.start(label, request, by=by)


def join_alone(talk: Talk, label: str, request: JoinGroupRequest, by: str = ORACLE) -> Any:
    start_joining(talk, label, request, by)
    return talk.finish(label)


def form(talk: Talk, group: str, **how: Any) -> Any:
    """A stable group of one member: what it was told when it joined."""
    joined = join_alone(talk, "join", join(group, **how))
    instance = how.get("instance")
    request = sync(group, joined.member_id, joined.generation_id, instance=instance)
    request.assignments = [SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all of it")]
    talk.ask("sync", request)
    return joined


@conversation(*MEMBERSHIP)
def one_member(talk: Talk) -> None:
    group = talk.name("g")
    joined = form(talk, group)
    member, generation = joined.member_id, joined.generation_id
    talk.ask("heartbeat", heartbeat(group, member, generation))
    talk.ask("sync again", sync(group, member, generation))
    talk.ask("heartbeat of an older generation", heartbeat(group, member, generation - 1))
    talk.ask("heartbeat of a newer generation", heartbeat(group, member, generation + 1))
    talk.ask("heartbeat of a stranger", heartbeat(group, STRANGER, generation))
    talk.ask("sync of an older generation", sync(group, member, generation - 1))
    talk.ask("sync of a stranger", sync(group, STRANGER, generation))
    talk.ask("sync with another protocol", sync(group, member, generation, protocol="roundrobin"))
    talk.ask("sync with another type", sync(group, member, generation, kind="connect"))
    talk.ask("a stranger leaves", leave(talk, group, STRANGER))
    talk.ask("join again", join(group, member))
    talk.ask("heartbeat before the sync", heartbeat(group, member, generation + 1))
    talk.ask("sync, with nothing assigned", sync(group, member, generation + 1))
    talk.ask("describe", DescribeGroupsRequest(groups=[group]))
    talk.ask("leave", leave(talk, group, member))
    talk.ask("heartbeat after leaving", heartbeat(group, member, generation + 1))
    talk.ask("sync after leaving", sync(group, member, generation + 1))
    talk.ask("join after leaving", join(group, member))
    talk.ask("leave again", leave(talk, group, member))


@conversation(*MEMBERSHIP)
def two_members(talk: Talk) -> None:
    group = talk.name("g")
    old = form(talk, group, about="the first")
    first = old.member_id
    start_joining(talk, "the second joins", join(group, about="the second"), by=SECOND)
    talk.until_group_is(group, "PreparingRebalance")
    talk.ask("heartbeat of the first", heartbeat(group, first, old.generation_id))
    talk.ask("sync of the first", sync(group, first, old.generation_id))
    led = talk.ask("the first joins again", join(group, first, about="the first"))
    second = talk.finish("the second joins").member_id
    generation = led.generation_id
    talk.start("sync of the second", sync(group, second, generation), by=SECOND)
    request = sync(group, first, generation, **{first: "half", second: "the other half"})
    talk.ask("sync of the leader", request)
    talk.finish("sync of the second")
    talk.ask("describe", DescribeGroupsRequest(groups=[group]))
    talk.ask("a follower joins again", join(group, second, about="the second"), by=SECOND)
    talk.ask("the second leaves", leave(talk, group, second))
    talk.ask("heartbeat of the one that is left", heartbeat(group, first, generation))
    alone = talk.ask("the one that is left joins", join(group, first, about="the first"))
    talk.ask("sync of the one that is left", sync(group, first, alone.generation_id, **{first: "all"}))
    talk.ask("the last one leaves", leave(talk, group, first))
    talk.ask("describe an empty group", DescribeGroupsRequest(groups=[group]))


@conversation(*MEMBERSHIP)
def a_member_that_does_not_come_back(talk: Talk) -> None:
    """It misses the rebalance, and the others go on without it."""
    group = talk.name("g")
    lost = form(talk, group, session_ms=1500, rebalance_ms=150)
    joined = join_alone(talk, "another joins", join(group), by=SECOND)
    talk.ask("heartbeat of the lost one", heartbeat(group, lost.member_id, lost.generation_id))
    talk.ask("the lost one joins again", join(group, lost.member_id))
    talk.ask("sync of the other", sync(group, joined.member_id, joined.generation_id), by=SECOND)


@conversation(*MEMBERSHIP)
def a_session_that_runs_out(talk: Talk) -> None:
    group = talk.name("g")
    lost = form(talk, group, session_ms=1000)
    talk.until_group_is(group, "Empty")
    talk.ask("heartbeat", heartbeat(group, lost.member_id, lost.generation_id))
    talk.ask("describe", DescribeGroupsRequest(groups=[group]))


@conversation(*MEMBERSHIP)
def refusals(talk: Talk) -> None:
    group = talk.name("g")
    talk.ask("an empty group", join(""))
    talk.ask("a session that is too short", join(group, session_ms=99))
    talk.ask("a session that is too long", join(group, session_ms=1_800_001))
    talk.ask("no protocols", join(group, protocols=()))
    talk.ask("no type", join(group, kind=""))
    talk.ask("an id that was never handed out", join(group, STRANGER))
    talk.ask("heartbeat in an unknown group", heartbeat(group, STRANGER, 1))
    talk.ask("heartbeat in a group without name", heartbeat("", STRANGER, 1))
    talk.ask("sync in an unknown group", sync(group, STRANGER, 1))
    talk.ask("sync in a group without name", sync("", STRANGER, 1))
    talk.ask("leave an unknown group", leave(talk, group, STRANGER))
    talk.ask("leave a group without name", leave(talk, "", STRANGER))
    form(talk, group)
    talk.ask("another type", join(group, kind="connect"), by=SECOND)
    talk.ask("another protocol", join(group, protocols=("roundrobin",)), by=SECOND)
    talk.ask("an id that is not of this group", join(group, STRANGER), by=SECOND)


@conversation(ApiKey.JOIN_GROUP, ApiKey.DESCRIBE_GROUPS)
def odd_clients(talk: Talk) -> None:
    """Members are called after their clients."""
    for label, by in {"no name": NAMELESS, "an empty name": "", "another alphabet": "Ottlé Ω"}.items():
        group = talk.name(f"group of {label} / ü")
        join_alone(talk, f"join with {label}", join(group), by=by)
        talk.settle_groups()
        talk.ask(f"describe the one with {label}", DescribeGroupsRequest(groups=[group]))


@conversation(ApiKey.JOIN_GROUP)
def a_protocol_named_twice(talk: Talk) -> None:
    start_joining(talk, "join", join(talk.name("g"), protocols=("range", "range")))
    talk.finish("join", patience_seconds=2)


@conversation(*MEMBERSHIP)
def the_choice_of_a_protocol(talk: Talk) -> None:
    """The first one that all know, as most of them like."""
    group = talk.name("g")
    old = join_alone(talk, "join", join(group, protocols=("a", "b", "c")))
    start_joining(talk, "the second joins", join(group, protocols=("c", "b")), by=SECOND)
    talk.until_group_is(group, "PreparingRebalance")
    talk.ask("the first joins again", join(group, old.member_id, protocols=("a", "b", "c")))
    talk.finish("the second joins")


@conversation(ApiKey.JOIN_GROUP)
def a_full_group(talk: Talk) -> None:
    """Here ``group.max.size`` is two."""
    group = talk.name("g")
    first = join_alone(talk, "join", join(group)).member_id
    start_joining(talk, "the second joins", join(group), by=SECOND)
    talk.until_group_is(group, "PreparingRebalance")
    talk.ask("the first joins again", join(group, first))
    talk.finish("the second joins")
    talk.ask("one too many", join(group), by="third")


@conversation(*MEMBERSHIP, rounds="4+")
def ids_handed_out(talk: Talk) -> None:
    """A member that was told its id, and has not come back with it yet."""
    group = talk.name("g")
    pending = talk.ask("join without id", join(group)).member_id
    talk.settle_groups()
    talk.ask("describe", DescribeGroupsRequest(groups=[group]))
    talk.ask("heartbeat", heartbeat(group, pending, 0))
    talk.ask("sync", sync(group, pending, 0))
    talk.ask("leave", leave(talk, group, pending))
    talk.ask("join with an id given back", join(group, pending))


@conversation(*MEMBERSHIP, rounds=SINCE_STATIC_MEMBERS)
def a_static_member(talk: Talk) -> None:
    group = talk.name("g")
    old = form(talk, group, instance="i")
    generation = old.generation_id
    talk.ask("heartbeat", heartbeat(group, old.member_id, generation, "i"))
    talk.ask("heartbeat without instance", heartbeat(group, old.member_id, generation))
    talk.ask("heartbeat of an unknown instance", heartbeat(group, old.member_id, generation, "j"))
    new = talk.ask("another in its place", join(group, instance="i"))
    talk.ask("heartbeat of the one before", heartbeat(group, old.member_id, generation, "i"))
    talk.ask("heartbeat of the one before, without instance", heartbeat(group, old.member_id, generation))
    talk.ask("sync of the one before", sync(group, old.member_id, generation, instance="i"))
    talk.ask("the one before joins", join(group, old.member_id, instance="i"))
    talk.ask("the one before leaves", leave(talk, group, old.member_id, instance="i"))
    talk.ask("heartbeat of the new one", heartbeat(group, new.member_id, generation, "i"))
    talk.ask("sync of the new one", sync(group, new.member_id, generation, instance="i"))
    talk.ask("describe", DescribeGroupsRequest(groups=[group]))
    talk.ask("another with another protocol", join(group, instance="i", protocols=("roundrobin",)))
    talk.ask("it joins under its id", join(group, new.member_id, instance="i", about="changed"))
    talk.ask("an unknown instance leaves", leave(talk, group, "", instance="j"))
    talk.ask("leave by the instance alone", leave(talk, group, "", instance="i"))
    talk.ask("heartbeat after leaving", heartbeat(group, new.member_id, generation, "i"))
    talk.ask("describe after that", DescribeGroupsRequest(groups=[group]))


@conversation(ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, rounds="3+")
def a_static_member_is_fenced(talk: Talk) -> None:
    """These know instances in earlier versions than JoinGroup does."""
    group = talk.name("g")
    old = form(talk, group, instance="i")
    talk.ask("another in its place", join(group, instance="i"))
    talk.ask("heartbeat of the one before", heartbeat(group, old.member_id, old.generation_id, "i"))
    talk.ask("sync of the one before", sync(group, old.member_id, old.generation_id, instance="i"))
    talk.ask("the one before leaves", leave(talk, group, old.member_id, instance="i"))


@conversation(*MEMBERSHIP, rounds=SINCE_STATIC_MEMBERS)
def two_static_members(talk: Talk) -> None:
    group = talk.name("g")
    first = form(talk, group, instance="i")
    talk.start("the second joins", join(group, instance="j"), by=SECOND)
    talk.until_group_is(group, "PreparingRebalance")
    led = talk.ask("the first joins again", join(group, first.member_id, instance="i"))
    second = talk.finish("the second joins").member_id
    shares = {first.member_id: "half", second: "the other half"}
    talk.ask("sync of the leader", sync(group, first.member_id, led.generation_id, instance="i", **shares))
    talk.ask("sync of the second", sync(group, second, led.generation_id, instance="j"), by=SECOND)
    heir = talk.ask("the second is replaced", join(group, instance="j"), by="heir").member_id
    talk.ask("sync of the heir", sync(group, heir, led.generation_id, instance="j"), by="heir")
    talk.ask("the leader is replaced", join(group, instance="i"), by="new leader")
    talk.ask("describe", DescribeGroupsRequest(groups=[group]))
    both = [MemberIdentity(member_id="", group_instance_id=name) for name in ("i", "nobody", "j")]
    talk.ask("both leave, and one that is not there", LeaveGroupRequest(group_id=group, members=both))


@conversation(*MEMBERSHIP, rounds=SINCE_STATIC_MEMBERS)
def odd_instances(talk: Talk) -> None:
    for label, instance in {"empty": "", "long": "x" * 250, "with a space": "a b", "a dot": "."}.items():
        talk.ask(label, join(talk.name(f"group of {label}"), instance=instance))
    talk.ask("with an id of its own", join(talk.name("g"), STRANGER, instance="i"))


@conversation(ApiKey.LEAVE_GROUP, rounds="3+")
def leaving_together(talk: Talk) -> None:
    group = talk.name("g")
    talk.ask("nobody leaves an unknown group", LeaveGroupRequest(group_id=group))
    member = join_alone(talk, "join", join(group)).member_id
    talk.ask("nobody leaves", LeaveGroupRequest(group_id=group))
    talk.ask("one and a stranger", leave(talk, group, member, STRANGER))
    talk.ask("nobody leaves an empty group", LeaveGroupRequest(group_id=group))


@conversation(ApiKey.FIND_COORDINATOR)
def coordinators(talk: Talk) -> None:
    by_list = talk.version_of(ApiKey.FIND_COORDINATOR) >= 4

    def find(label: str, *keys: str, kind: int = 0) -> None:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys))
        if not by_list:
            request = FindCoordinatorRequest(key_type=kind, key=keys[0])
        talk.ask(label, request)

    find("of a group", talk.name("g"))
    find("of a group without name", "")
    find("of a transactional id", talk.name("x"), kind=1)
    find("of a share partition that is none", "g", kind=2)
    find("of an unknown type", "g", kind=9)
    find("of a negative type", "g", kind=-1)
    if by_list:
        find("of several groups", talk.name("g"), talk.name("h"), talk.name("g"))
        find("of nothing")
