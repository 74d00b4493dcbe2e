"""A conversation about groups: what several clients ask, in order, and whose answers ``record.py`` keeps.

Each step builds on what the ones before it have changed.
"""

from collections.abc import Sequence
from typing import NamedTuple

from protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from protocol.schema import Message
from protocol.stored.consumer_protocol import ConsumerProtocolSubscription
from tests.golden.groups.answers import TOPIC_ID

ANSWERS: dict[type[Message], type[Message]] = {
    DeleteGroupsRequest: DeleteGroupsResponse,
    DescribeGroupsRequest: DescribeGroupsResponse,
    FindCoordinatorRequest: FindCoordinatorResponse,
    HeartbeatRequest: HeartbeatResponse,
    JoinGroupRequest: JoinGroupResponse,
    LeaveGroupRequest: LeaveGroupResponse,
    ListGroupsRequest: ListGroupsResponse,
    OffsetCommitRequest: OffsetCommitResponse,
    OffsetDeleteRequest: OffsetDeleteResponse,
    OffsetFetchRequest: OffsetFetchResponse,
    SyncGroupRequest: SyncGroupResponse,
}

SETTINGS = {"offsets.topic.num.partitions": "3"}


class Step(NamedTuple):
    """One request of ``client``, and the answer to it; or only one of the two; or time that passes."""

    label: str
    client: str = ""
    version: int = 0
    request: Message | None = None
    answered: bool = True
    name: str = ""
    """What the member is called that the answer introduces."""
    pass_ms: int = 0


STEPS: list[Step] = []


def say(client: str, label: str, version: int, request: Message, *, name: str = "") -> None:
    """``client`` asks and is answered at once."""
    STEPS.append(Step(_label(client, label, version, request), client, version, request, name=name))


def begin(client: str, label: str, version: int, request: Message) -> None:
    """``client`` asks, and will have to wait for the answer."""
    step = Step(_label(client, label, version, request), client, version, request, answered=False)
    STEPS.append(step)


def _label(client: str, label: str, version: int, request: Message) -> str:
    group = getattr(request, "group_id", "")
    return f"{client}: {label}, version {version}" + (f", {group}" if group else "")


def hear(client: str, label: str, version: int, *, name: str = "") -> None:
    """``client`` is answered at last."""
    STEPS.append(Step(f"{client} hears: {label}", client, version, name=name))


def pass_time(milliseconds: int) -> None:
    STEPS.append(Step(f"{milliseconds} ms pass", pass_ms=milliseconds))


# Requests


def topics(*names: str) -> bytes:
    """The metadata of a consumer that reads these topics."""
    return b"\0\1" + ConsumerProtocolSubscription(topics=list(names)).encode(1)


def join(
    group: str,
    member_id: str = "",
    *,
    instance: str | None = None,
    kind: str = "consumer",
    offers: Sequence[tuple[str, bytes]] = (("range", topics("t")),),
    session_ms: int = 10_000,
    rebalance_ms: int = 10_000,
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=kind,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in offers],
    )


def sync(
    group: str,
    generation: int,
    member_id: str,
    assignments: Sequence[tuple[str, bytes]] = (),
    *,
    instance: str | None = None,
    protocol: tuple[str | None, str | None] = (None, None),
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=protocol[0],
        protocol_name=protocol[1],
        assignments=[
            SyncGroupRequestAssignment(member_id=member, assignment=assignment)
            for member, assignment in assignments
        ],
    )


def heartbeat(group: str, generation: int, member_id: str, instance: str | None = None) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance
    )


def leave(group: str, *members: tuple[str, str | None]) -> LeaveGroupRequest:
    return LeaveGroupRequest(
        group_id=group,
        members=[
            MemberIdentity(member_id=member, group_instance_id=instance) for member, instance in members
        ],
    )


def commit(
    group: str,
    *offsets: tuple[str, int, int, str | None],
    generation: int = -1,
    member_id: str = "",
    instance: str | None = None,
    retention_ms: int = -1,
) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance,
        retention_time_ms=retention_ms,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=offset, committed_metadata=metadata
                    )
                ],
            )
            for topic, partition, offset, metadata in offsets
        ],
    )


def fetch(
    version: int,
    group: str,
    *partitions: tuple[str, list[int]],
    everything: bool = False,
    stable: bool = False,
) -> OffsetFetchRequest:
    if version < 8:
        return OffsetFetchRequest(
            group_id=group,
            require_stable=stable,
            topics=None
            if everything
            else [
                OffsetFetchRequestTopic(name=name, partition_indexes=indexes) for name, indexes in partitions
            ],
        )
    return OffsetFetchRequest(
        require_stable=stable,
        groups=[
            OffsetFetchRequestGroup(
                group_id=group,
                topics=None
                if everything
                else [
                    OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                    for name, indexes in partitions
                ],
            )
        ],
    )


def delete_offsets(group: str, *partitions: tuple[str, list[int]]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes],
            )
            for name, indexes in partitions
        ],
    )


def describe(*groups: str, operations: bool = False) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=list(groups), include_authorized_operations=operations)


# Where groups are kept

for version in range(4):
    say("a", "find a group", version, FindCoordinatorRequest(key="g"))
    say("a", "find the group without a name", version, FindCoordinatorRequest(key=""))
    if version:
        say("a", "find a key of an unknown type", version, FindCoordinatorRequest(key="g", key_type=3))
        say("a", "find a key of a negative type", version, FindCoordinatorRequest(key="g", key_type=-1))
for version in range(4, 7):
    say("a", "find groups", version, FindCoordinatorRequest(coordinator_keys=["g", "", "h", "g"]))
    say("a", "find none", version, FindCoordinatorRequest(coordinator_keys=[]))
    say(
        "a",
        "find keys of an unknown type",
        version,
        FindCoordinatorRequest(coordinator_keys=["g", ""], key_type=3),
    )

# Joining, in every version

for version in range(10):
    group = f"join-{version}"
    say("a", "join without a name of the group", version, join(""))
    say("a", "join with too short a session", version, join(group, session_ms=1))
    say("a", "join with too long a session", version, join(group, session_ms=10**8))
    say("a", "join with an id that nobody gave out", version, join(group, "nobody"))
    say("a", "join without protocols", version, join(group, offers=()))
    say("a", "join without a type", version, join(group, kind=""))
    say("a", "join", version, join(group), name=group)
    say("a", "describe who joined", 5, describe(group))
    if version >= 4:
        say("a", "join with the id", version, join(group, f"<{group}>"))
        say("a", "join again", version, join(group, f"<{group}>"))
    say("a", "join with another type", version, join(group, kind="connect"))
    say("a", "join with another protocol", version, join(group, offers=(("other", b""),)))
    say("a", "heartbeat", min(version, 4), heartbeat(group, 1, f"<{group}>"))
    say(
        "a",
        "leave",
        min(version, 2),
        LeaveGroupRequest(group_id=group, member_id=f"<{group}>"),
    )
for version in range(5, 10):
    say(
        "a",
        "join as a static member",
        version,
        join(f"static-{version}", instance=f"i{version}"),
        name=f"s{version}",
    )
say("a", "join as a static member with an id that nobody gave out", 9, join("static-9", "x", instance="i"))
say("a", "join as a static member without a name", 9, join("static-empty", instance=""), name="empty")

# A generation of two, in every version of SyncGroup

for version in range(6):
    group = f"sync-{version}"
    first, second = f"first-{version}", f"second-{version}"
    protocol: tuple[str | None, str | None] = ("consumer", "range") if version >= 5 else (None, None)
    say("a", "join", 3, join(group), name=first)
    begin("b", "join", 3, join(group))
    say(
        "a",
        "heartbeat during the rebalance",
        4,
        heartbeat(group, 1, f"<{first}>"),
    )
    say("a", "describe the rebalance", 6, describe(group))
    say("a", "join again", 9, join(group, f"<{first}>"))
    hear("b", "joined", 3, name=second)
    say(
        "a",
        "heartbeat before the assignment",
        4,
        heartbeat(group, 2, f"<{first}>"),
    )
    say(
        "a",
        "commit before the assignment",
        9,
        commit(group, ("t", 0, 1, ""), generation=2, member_id=f"<{first}>"),
    )
    begin(
        "b",
        "sync",
        version,
        sync(group, 2, f"<{second}>", protocol=protocol),
    )
    say(
        "a",
        "sync with the wrong generation",
        version,
        sync(group, 7, f"<{first}>", protocol=protocol),
    )
    say("a", "sync as nobody", version, sync(group, 2, "nobody", protocol=protocol))
    say(
        "a",
        "assign",
        version,
        sync(
            group,
            2,
            f"<{first}>",
            [(f"<{first}>", b"for a"), (f"<{second}>", b"for b"), ("x", b"")],
            protocol=protocol,
        ),
    )
    hear("b", "assigned", version)
    say(
        "b",
        "sync again",
        version,
        sync(group, 2, f"<{second}>", protocol=protocol),
    )
    say("b", "follower joins again", 9, join(group, f"<{second}>"))
    say("a", "describe them", 6, describe(group, operations=True))
    say(
        "a",
        "commit as a member",
        9,
        commit(group, ("t", 0, 1, ""), generation=2, member_id=f"<{first}>"),
    )
    say("a", "delete the offsets", 0, delete_offsets(group, ("t", [0])))
    say("a", "delete the group", 3, DeleteGroupsRequest(groups_names=[group]))
    say("a", "sync in no group", version, sync("nowhere", 1, "x", protocol=protocol))
    say("a", "sync in the group without a name", version, sync("", 1, "x", protocol=protocol))
say("a", "sync without protocols", 5, sync("sync-5", 2, "<first-5>"))
say(
    "a",
    "sync without a protocol",
    5,
    sync("sync-5", 2, "<first-5>", protocol=("consumer", None)),
)
say(
    "a",
    "sync with another type",
    5,
    sync("sync-5", 2, "<first-5>", protocol=("connect", "range")),
)
say(
    "a",
    "sync with another protocol",
    5,
    sync("sync-5", 2, "<first-5>", protocol=("consumer", "rr")),
)

for version in range(5):
    say("a", "heartbeat", version, heartbeat("sync-0", 2, "<first-0>"))
    say(
        "a",
        "heartbeat with the wrong generation",
        version,
        heartbeat("sync-0", 1, "<first-0>"),
    )
    say("a", "heartbeat as nobody", version, heartbeat("sync-0", 2, "nobody"))
    say("a", "heartbeat in no group", version, heartbeat("nowhere", 2, "x"))
    say("a", "heartbeat in the group without a name", version, heartbeat("", 2, "x"))
say("a", "heartbeat as an unknown instance", 4, heartbeat("sync-0", 2, "<first-0>", "i"))

# Leaving, in every version

for version in range(3):
    say("a", "leave as nobody", version, LeaveGroupRequest(group_id="sync-0", member_id="nobody"))
    say("a", "leave no group", version, LeaveGroupRequest(group_id="nowhere", member_id="x"))
    say("a", "leave the group without a name", version, LeaveGroupRequest(group_id="", member_id="x"))
for version in range(3, 6):
    group = f"sync-{version}"
    say("a", "leave no group", version, leave("nowhere", ("x", None), ("", "i")))
    say("a", "leave the group without a name", version, leave("", ("x", None)))
    say("a", "nobody leaves", version, leave(group))
    say("a", "strangers leave", version, leave(group, ("x", None), ("", None), ("", "i")))
    say(
        "a",
        "leave with another's instance id",
        version,
        leave(group, (f"<{second}>", "i")),
    )
    say(
        "a",
        "leave twice",
        version,
        leave(group, (f"<{second}>", None), (f"<{second}>", None)),
    )
    say(
        "a",
        "heartbeat of who stays",
        4,
        heartbeat(group, 2, f"<{first}>"),
    )
    say(
        "a",
        "the last one leaves",
        version,
        leave(group, (f"<{first}>", None)),
    )
    say("a", "describe what is left", 6, describe(group))
    say("a", "delete it", 0, DeleteGroupsRequest(groups_names=[group, group, "nowhere"]))

# Static members

say("a", "join as A", 9, join("static", instance="A"), name="A")
begin("b", "join as B", 9, join("static", instance="B"))
say("a", "join as A again", 9, join("static", "<A>", instance="A"))
hear("b", "joined", 9, name="B")
begin("b", "sync", 3, sync("static", 2, "<B>", instance="B"))
say(
    "a",
    "assign",
    3,
    sync("static", 2, "<A>", [("<A>", b"aa"), ("<B>", b"bb")], instance="A"),
)
hear("b", "assigned", 3)
for version in (5, 8, 9):
    heir = f"A{version}"
    former = {5: "A", 8: "A5", 9: "A8"}[version]
    say("a", "A comes back", version, join("static", instance="A"), name=heir)
    say("a", "describe it", 6, describe("static"))
    say("a", "sync of the heir", 3, sync("static", 2, f"<{heir}>", instance="A"))
    say(
        "a",
        "heartbeat of the former",
        4,
        heartbeat("static", 2, f"<{former}>", "A"),
    )
    say(
        "a",
        "heartbeat of the former, without instance id",
        4,
        heartbeat("static", 2, f"<{former}>"),
    )
    say(
        "a",
        "join of the former",
        version,
        join("static", f"<{former}>", instance="A"),
    )
    say(
        "a",
        "sync of the former",
        3,
        sync("static", 2, f"<{former}>", instance="A"),
    )
    say(
        "a",
        "commit of the former",
        9,
        commit("static", ("t", 0, 1, ""), generation=2, member_id=f"<{former}>", instance="A"),
    )
    say(
        "a",
        "the former leaves",
        5,
        leave("static", (f"<{former}>", "A"), (f"<{former}>", None)),
    )
say(
    "b",
    "B comes back with other metadata",
    9,
    join("static", instance="B", offers=(("range", topics("u")),)),
    name="B2",
)
say("b", "B comes back with another protocol only", 9, join("static", instance="B", offers=(("rr", b""),)))
say("b", "B is still there", 4, heartbeat("static", 2, "<B2>", "B"))
begin("b", "B joins again with something new", 9, join("static", "<B2>", instance="B"))
begin("c", "B comes back meanwhile", 9, join("static", instance="B"))
hear("b", "fenced", 9)
say("a", "A joins again", 9, join("static", "<A9>", instance="A"))
hear("c", "joined", 9, name="B3")
begin("c", "sync", 3, sync("static", 3, "<B3>", instance="B"))
begin("b", "B comes back before the assignment", 9, join("static", instance="B"))
hear("c", "fenced", 3)
say("a", "heartbeat", 4, heartbeat("static", 3, "<A9>", "A"))
say("a", "an operator removes B", 5, leave("static", ("", "B"), ("", "C")))
hear("b", "removed", 9)
say("a", "A joins again and is alone", 9, join("static", "<A9>", instance="A"))

# The choice of a protocol

for number, (one, other) in enumerate(
    [
        (("range", "rr"), ("rr", "range")),
        (("a", "b"), ("b", "a")),
        (("roundrobin", "range", "x"), ("x", "roundrobin", "range")),
    ]
):
    group = f"choice-{number}"
    mine = tuple((name, b"a:" + name.encode()) for name in one)
    theirs = tuple((name, b"b:" + name.encode()) for name in other)
    say("a", "join", 3, join(group, offers=mine), name=group)
    begin("b", "join", 3, join(group, offers=theirs))
    say("a", "join again", 9, join(group, f"<{group}>", offers=mine))
    hear("b", "joined", 3, name=f"{group}-b")

# Commits and what becomes of them

ODD = (
    ("t", 0, 5, "m"),
    ("t", 1, 6, None),
    ("t", 9, 1, ""),
    ("nosuch", 0, 1, ""),
    ("bad topic!", 0, 1, ""),
    ("", 0, 1, ""),
)
for version in range(2, 10):
    group = f"commit-{version}"
    say("a", "fetch of no group", version, fetch(version, group, ("t", [0, 9]), ("nosuch", [0])))
    say("a", "fetch everything of no group", version, fetch(version, group, everything=True))
    say(
        "a",
        "commit to no group as a member",
        version,
        commit(group, ("t", 0, 1, ""), generation=1, member_id="x"),
    )
    say("a", "commit", version, commit(group, *ODD))
    say("a", "fetch", version, fetch(version, group, ("t", [0, 1, 2, 9, 0]), ("nosuch", [0])))
    say("a", "fetch everything", version, fetch(version, group, everything=True))
    say("a", "fetch nothing", version, fetch(version, group))
    say("a", "commit nothing", version, commit(group))
    say(
        "a",
        "commit as a member of a group without members",
        version,
        commit(group, ("t", 0, 1, ""), generation=1, member_id="x"),
    )
    say("a", "commit with only a member id", version, commit(group, ("t", 0, 2, ""), member_id="x"))
    say("a", "commit to the group without a name", version, commit("", ("t", 0, version, "")))
    say("a", "fetch it", version, fetch(version, "", ("t", [0])))
say("a", "fetch", 1, fetch(1, "commit-9", ("t", [0, 7]), ("nosuch", [0])))
say("a", "fetch what is stable", 7, fetch(7, "commit-9", ("t", [0]), stable=True))
say("a", "fetch what is stable", 9, fetch(9, "commit-9", ("t", [0]), stable=True))
say("a", "commit with a retention", 3, commit("commit-3", ("t", 2, 7, "kept"), retention_ms=10**9))
say(
    "a",
    "commit with long metadata",
    9,
    commit("commit-9", ("t", 0, 1, "m" * 4096), ("t", 1, 1, "m" * 4097), ("t", 2, 1, "é" * 4096)),
)
say("a", "commit negative offsets", 9, commit("commit-9", ("t", 0, -5, ""), ("t", 1, -1, "")))
say("a", "fetch negative offsets", 9, fetch(9, "commit-9", ("t", [0, 1])))
say(
    "a",
    "commit one partition several times",
    9,
    commit("commit-9", ("t", 0, 5, ""), ("t", 0, 6, ""), ("t", 9, 1, ""), ("t", 0, 7, "")),
)
say("a", "fetch the last of them", 9, fetch(9, "commit-9", ("t", [0])))
say("a", "commit to a negative partition", 9, commit("commit-9", ("t", -1, 5, "")))
say(
    "a",
    "fetch of several groups",
    8,
    OffsetFetchRequest(
        groups=[
            *fetch(8, "commit-2", ("t", [0])).groups,
            *fetch(8, "nowhere", everything=True).groups,
            *fetch(8, "commit-2", ("t", [0])).groups,
        ]
    ),
)
say("a", "fetch of no groups", 9, OffsetFetchRequest(groups=[]))
say(
    "a",
    "fetch with a member and an epoch",
    9,
    OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id="commit-2",
                member_id="x",
                member_epoch=4,
                topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])],
            )
        ]
    ),
)
say(
    "a",
    "commit by topic id",
    10,
    OffsetCommitRequest(
        group_id="commit-10",
        topics=[
            OffsetCommitRequestTopic(
                topic_id=TOPIC_ID,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=0,
                        committed_offset=50,
                        committed_leader_epoch=3,
                        committed_metadata="x",
                    ),
                    OffsetCommitRequestPartition(partition_index=9, committed_offset=50),
                ],
            ),
            OffsetCommitRequestTopic(
                topic_id=b"y" * 16,
                partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=50)],
            ),
        ],
    ),
)
say(
    "a",
    "fetch by topic id",
    10,
    OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id="commit-10",
                topics=[
                    OffsetFetchRequestTopics(topic_id=TOPIC_ID, partition_indexes=[0, 1, 9]),
                    OffsetFetchRequestTopics(topic_id=b"y" * 16, partition_indexes=[0, 2]),
                    OffsetFetchRequestTopics(partition_indexes=[0]),
                ],
            ),
            OffsetFetchRequestGroup(group_id="commit-10", topics=None),
            OffsetFetchRequestGroup(group_id="nowhere", topics=None),
        ]
    ),
)
say("a", "fetch the epoch by name", 9, fetch(9, "commit-10", ("t", [0])))
say(
    "a",
    "delete offsets, some of them not there",
    0,
    delete_offsets("commit-2", ("t", [0, 0, 9, 2]), ("nosuch", [0])),
)
say("a", "fetch what is left", 9, fetch(9, "commit-2", everything=True))
say("a", "delete offsets of the group without a name", 0, delete_offsets("", ("t", [0])))
say("a", "delete offsets of no group", 0, delete_offsets("nowhere", ("nosuch", [0])))
say("a", "delete no offsets", 0, delete_offsets("commit-2"))
for version in range(4):
    group = f"commit-{version + 3}"
    say("a", "delete groups", version, DeleteGroupsRequest(groups_names=[group, "nowhere", group]))
    say("a", "fetch of the deleted group", 9, fetch(9, group, everything=True))
say("a", "delete the group without a name", 3, DeleteGroupsRequest(groups_names=[""]))
say("a", "delete no groups", 3, DeleteGroupsRequest(groups_names=[]))

# Operators

for version in range(7):
    say("a", "describe groups", version, describe("commit-8", "nowhere", "static", "commit-8"))
    if version >= 3:
        say("a", "describe groups with operations", version, describe("commit-8", "nowhere", operations=True))
say("a", "describe none", 6, describe())
for version in range(6):
    say("a", "list groups", version, ListGroupsRequest())
for states in (["completingrebalance"], ["STABLE"], ["nonsense"], ["empty", "Stable"], [""]):
    say("a", f"list groups in {states}", 4, ListGroupsRequest(states_filter=states))
for kinds in (["Classic"], ["consumer"], ["nonsense"], ["classic", "share"], [""]):
    say("a", f"list {kinds} groups", 5, ListGroupsRequest(types_filter=kinds))
say(
    "a",
    "list classic groups in one state",
    5,
    ListGroupsRequest(states_filter=["Empty"], types_filter=["classic"]),
)

# Whose topics are read

for number, (kind, metadata) in enumerate(
    [
        ("consumer", topics("other")),
        ("consumer", topics("t")),
        ("consumer", b""),
        ("consumer", b"\xff\xff" + topics("other")[2:]),
        ("connect", b"x"),
    ]
):
    group = f"reads-{number}"
    say("a", "join", 3, join(group, kind=kind, offers=(("range", metadata),)), name=group)
    say("a", "delete offsets before the assignment", 0, delete_offsets(group, ("t", [0])))
    say("a", "sync", 4, sync(group, 1, f"<{group}>"))
    say("a", "delete offsets", 0, delete_offsets(group, ("t", [0])))

# What time does

say("a", "join", 3, join("slow", session_ms=6000, rebalance_ms=1500), name="slow-a")
begin("b", "join", 3, join("slow", session_ms=6000, rebalance_ms=1500))
say("a", "join again", 9, join("slow", "<slow-a>", session_ms=6000, rebalance_ms=1500))
hear("b", "joined", 3, name="slow-b")
say("a", "assign", 4, sync("slow", 2, "<slow-a>"))
say(
    "b",
    "heartbeat without having asked for the assignment",
    4,
    heartbeat("slow", 2, "<slow-b>"),
)
pass_time(1700)
say("a", "heartbeat", 4, heartbeat("slow", 2, "<slow-a>"))
say("b", "heartbeat, too late", 4, heartbeat("slow", 2, "<slow-b>"))
say("a", "join again", 9, join("slow", "<slow-a>", session_ms=6000, rebalance_ms=1500))
begin("b", "join", 3, join("slow", session_ms=6000, rebalance_ms=1500))
pass_time(1700)
hear("b", "joined, as the other did not come back", 3, name="slow-c")
say("a", "heartbeat, too late", 4, heartbeat("slow", 3, "<slow-a>"))
say("b", "sync", 4, sync("slow", 4, "<slow-c>"))
say("a", "an id is given out", 4, join("slow", session_ms=6000), name="slow-d")
pass_time(6300)
say("b", "heartbeat, after a long silence", 4, heartbeat("slow", 4, "<slow-c>"))
say("a", "join with an id that was not used in time", 9, join("slow", "<slow-d>"))
say("a", "describe what is left", 6, describe("slow"))
