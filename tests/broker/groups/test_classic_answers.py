"""Every request in every state, answered as a running Kafka 4.4 was seen to answer it."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from broker.groups.requests import Joined, Synced
from broker.groups.states import GroupState
from protocol.error_codes import ErrorCode
from tests.broker.groups.rooms import Room, subscription

NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
NOT_EMPTY = ErrorCode.NON_EMPTY_GROUP
SUBSCRIBED = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


class Scene(NamedTuple):
    room: Room
    member_id: str
    generation: int


def no_group() -> Scene:
    return Scene(Room(), "m", 1)


def pending() -> Scene:
    room = Room()
    return Scene(room, room.join().outcome.member_id, 0)


def completing() -> Scene:
    room = Room()
    return Scene(room, room.join_alone().member_id, 1)


def stable() -> Scene:
    scene = completing()
    scene.room.sync(scene.member_id, 1, {scene.member_id: b"A"})
    return scene


def preparing() -> Scene:
    scene = stable()
    scene.room.join(version=3)
    return scene


def empty() -> Scene:
    scene = stable()
    scene.room.leave(scene.member_id)
    return scene._replace(generation=2)


SCENES: dict[str, Callable[[], Scene]] = {
    "no group": no_group,
    "pending": pending,
    "completing": completing,
    "stable": stable,
    "preparing": preparing,
    "empty": empty,
}


def heartbeat(scene: Scene, **other: object) -> ErrorCode:
    asked = {"member_id": scene.member_id, "generation": scene.generation, **other}
    return scene.room.heartbeat(**asked)  # type: ignore[arg-type]


def sync(scene: Scene, **other: object) -> ErrorCode:
    asked = {"member_id": scene.member_id, "generation": scene.generation, **other}
    return scene.room.sync(**asked).outcome.error  # type: ignore[arg-type]


def commit(scene: Scene, **other: object) -> ErrorCode:
    (code,) = scene.room.commit({("t", 0): 5}, **other).outcome  # type: ignore[arg-type]
    return code


def commit_as_member(scene: Scene, **other: object) -> ErrorCode:
    return commit(scene, **{"member_id": scene.member_id, "generation": scene.generation, **other})


def join(scene: Scene, **how: object) -> ErrorCode | None:
    """None if the answer has to wait."""
    ticket = scene.room.join(**how)  # type: ignore[arg-type]
    return ticket.outcome.error if ticket.is_settled else None


def delete_offsets(scene: Scene) -> ErrorCode:
    deleted = scene.room.delete_offsets(("t", 0))
    return deleted.error or deleted.codes[0]


REQUESTS: dict[str, Callable[[Scene], ErrorCode | None]] = {
    "heartbeat": heartbeat,
    "heartbeat, wrong generation": lambda scene: heartbeat(scene, generation=scene.generation + 5),
    "heartbeat, no generation": lambda scene: heartbeat(scene, generation=-1),
    "heartbeat, unknown member": lambda scene: heartbeat(scene, member_id="zz"),
    "heartbeat, unknown instance": lambda scene: heartbeat(scene, instance_id="nope"),
    "sync": sync,
    "sync, wrong generation": lambda scene: sync(scene, generation=scene.generation + 1),
    "sync, unknown member": lambda scene: sync(scene, member_id="zz"),
    "sync, wrong protocol": lambda scene: sync(scene, protocol_type="consumer", protocol_name="other"),
    "sync, wrong type": lambda scene: sync(scene, protocol_type="connect", protocol_name="range"),
    "leave": lambda scene: scene.room.leave(scene.member_id)[0],
    "leave, unknown member": lambda scene: scene.room.leave("zz")[0],
    "leave, nobody": lambda scene: scene.room.leave("")[0],
    "leave, unknown instance": lambda scene: scene.room.leave(("", "inst"))[0],
    "leave, with another's instance": lambda scene: scene.room.leave((scene.member_id, "inst"))[0],
    "commit for nobody": commit,
    "commit": commit_as_member,
    "commit, wrong generation": lambda scene: commit_as_member(scene, generation=scene.generation + 1),
    "commit, unknown member": lambda scene: commit_as_member(scene, member_id="zz"),
    "commit, no member": lambda scene: commit_as_member(scene, member_id=""),
    "commit, no generation": lambda scene: commit_as_member(scene, generation=-1),
    "commit, instance only": lambda scene: commit(scene, instance_id="i"),
    "commit, old version": lambda scene: commit_as_member(scene, version=2),
    "delete offsets": delete_offsets,
    "delete group": lambda scene: scene.room.delete(),
    "join again": lambda scene: join(scene, member_id=scene.member_id),
    "join again, changed": lambda scene: join(scene, member_id=scene.member_id, offers=(("range", b"new"),)),
    "join, other type": lambda scene: join(scene, kind="connect", version=3),
    "join, other protocol": lambda scene: join(scene, offers=("rr",), version=3),
    "join, new version": join,
}

SEEN = """
                                no group  pending  completing  stable  preparing  empty
heartbeat                     : 25        25       0           0       27         25
heartbeat, wrong generation   : 25        25       22          22      22         25
heartbeat, no generation      : 25        25       22          22      22         25
heartbeat, unknown member     : 25        25       25          25      25         25
heartbeat, unknown instance   : 25        25       25          25      25         25
sync                          : 25        25       0           0       27         25
sync, wrong generation        : 25        25       22          22      22         25
sync, unknown member          : 25        25       25          25      25         25
sync, wrong protocol          : 25        25       23          23      23         25
sync, wrong type              : 25        25       23          23      23         25
leave                         : 25        0        0           0       0          25
leave, unknown member         : 25        25       25          25      25         25
leave, nobody                 : 25        25       25          25      25         25
leave, unknown instance       : 25        25       25          25      25         25
leave, with another's instance: 25        0        25          25      25         25
commit for nobody             : 0         0        25          25      25         0
commit                        : 69        25       27          0       0          25
commit, wrong generation      : 69        25       22          22      22         25
commit, unknown member        : 69        25       25          25      25         25
commit, no member             : 69        25       25          25      25         25
commit, no generation         : 0         0        22          22      22         0
commit, instance only         : 0         0        25          25      25         0
commit, old version           : 22        25       27          0       0          25
delete offsets                : 69        0        86          86      86         0
delete group                  : 69        0        68          68      68         0
join again                    : 25        0        0           0       0          25
join again, changed           : 25        0        0           0       0          25
join, other type              : 0         0        23          23      23         0
join, other protocol          : 0         0        23          23      23         0
join, new version             : 79        79       79          79      79         79
"""


def read_table(text: str) -> Iterator[tuple[str, str, ErrorCode]]:
    """Request, scene and error code, for each cell."""
    for row in text.strip().splitlines()[1:]:
        request_name, _, numbers = row.partition(":")
        for scene_name, number in zip(SCENES, numbers.split(), strict=True):
            yield request_name.strip(), scene_name, ErrorCode(int(number))


def test_every_request_was_seen() -> None:
    assert {request_name for request_name, _, _ in read_table(SEEN)} == set(REQUESTS)


@pytest.mark.parametrize(("request_name", "scene_name", "code"), list(read_table(SEEN)))
def test_answers(request_name: str, scene_name: str, code: ErrorCode) -> None:
    assert REQUESTS[request_name](SCENES[scene_name]()) is code


@pytest.mark.parametrize(
    ("scene_name", "state"),
    [
        ("no group", "Dead"),
        ("pending", "Empty"),
        ("completing", "CompletingRebalance"),
        ("stable", "Stable"),
        ("preparing", "PreparingRebalance"),
        ("empty", "Empty"),
    ],
)
def test_the_state_that_is_described(scene_name: str, state: str) -> None:
    assert SCENES[scene_name]().room.describe().state == state


def test_metadata_and_protocol_are_described_of_stable_groups_only() -> None:
    described = {name: make().room.describe() for name, make in SCENES.items()}
    assert {name for name, group in described.items() if group.protocol_name} == {"stable"}
    assert described["stable"].members[0].metadata == b"about range"
    assert described["completing"].members[0].metadata == b""
    # The assignment stays in sight during a rebalance.
    assert [member.assignment for member in described["preparing"].members] == [b"A", b""]
    assert described["preparing"].protocol_type == "consumer"
    assert described["pending"].protocol_type == ""


@pytest.mark.parametrize(
    ("kind", "metadata", "code"),
    [
        ("consumer", subscription("other"), NONE),
        ("consumer", subscription("t"), SUBSCRIBED),
        ("consumer", b"", SUBSCRIBED),  # nobody knows what it reads
        ("consumer", b"\x00\x01", SUBSCRIBED),
        ("consumer", b"\xff\xff" + subscription("other")[2:], NONE),
        ("connect", b"x", NOT_EMPTY),
    ],
)
def test_offsets_of_subscribed_topics_are_not_deleted(kind: str, metadata: bytes, code: ErrorCode) -> None:
    room = Room()
    joined = room.join_alone(kind=kind, offers=(("range", metadata),))
    scene = Scene(room, joined.member_id, 1)
    assert delete_offsets(scene) is code
    room.sync(joined.member_id, 1)
    assert delete_offsets(scene) is code


def test_a_group_in_its_first_rebalance_is_supposed_to_read_everything() -> None:
    room = Room(Room().settings._replace(initial_rebalance_delay_ms=3000))
    room.join(version=3, offers=(("range", subscription("other")),))
    assert room.state() is GroupState.PREPARING_REBALANCE
    assert delete_offsets(Scene(room, "", 0)) is SUBSCRIBED


def test_leaving_twice_in_one_request() -> None:
    scene = stable()
    assert scene.room.leave(scene.member_id, scene.member_id) == [NONE, UNKNOWN]
    assert scene.room.state() is GroupState.EMPTY


def test_errors_carry_nothing_else() -> None:
    scene = stable()
    assert scene.room.sync("zz", 1).outcome == Synced(UNKNOWN)
    assert scene.room.join("zz").outcome == Joined("zz", UNKNOWN)
