"""What the share coordinator writes, when, and that it finds the same again."""

import random

import pytest

from broker.coordination.tickets import Ticket
from broker.share.state import SharePartitionKey, StateSettings
from broker.share.state_batches import StateBatch
from protocol.error_codes import ErrorCode
from storage.errors import DiskFailure
from tests.broker.share.state_room import KEY, TOPIC_ID, StateRoom, is_well

OTHER = KEY._replace(partition=1)


def test_a_snapshot_follows_so_many_updates() -> None:
    room = StateRoom(StateSettings(updates_per_snapshot=2))
    room.initialize()
    for offset in range(5):
        assert is_well(room.write(StateBatch(offset, offset, 2, 1)))
    assert room.stored() == ["snapshot 0", "update 0", "update 0", "snapshot 1", "update 1", "update 1"]
    assert room.read().batches == (StateBatch(0, 4, 2, 1),)


def test_every_write_may_be_a_snapshot() -> None:
    room = StateRoom(StateSettings(updates_per_snapshot=0))
    room.initialize()
    room.write(StateBatch(0, 0, 2, 1))
    assert room.stored() == ["snapshot 0", "snapshot 1"]


def test_a_new_leader_is_written_down_once() -> None:
    room = StateRoom()
    room.initialize()
    for _ in range(3):
        assert is_well(room.read(leader=4))
    assert room.stored() == ["snapshot 0", "update 0"]
    assert room.read(leader=3).error is ErrorCode.FENCED_LEADER_EPOCH


def test_a_repeated_initialization_writes_nothing() -> None:
    room = StateRoom()
    room.initialize(epoch=3, start=7)
    room.initialize(epoch=3, start=7)
    assert room.stored() == ["snapshot 0"]
    room.initialize(epoch=3, start=8)
    assert room.stored() == ["snapshot 0", "snapshot 1"]


def test_idle_state_is_written_anew_so_that_the_log_before_can_go() -> None:
    room = StateRoom(StateSettings(cold_snapshot_interval_ms=1000))
    room.initialize()
    room.pass_ms(500)
    room.initialize(OTHER)
    assert room.machine.needed_from == 0
    room.pass_ms(500)
    assert room.stored() == ["snapshot 0", "snapshot 0", "snapshot 1"]
    assert room.machine.needed_from == 1
    room.pass_ms(1000)
    assert room.stored()[3:] == ["snapshot 2", "snapshot 1"]
    assert room.machine.needed_from == 3
    room.pass_ms(10_000)
    assert len(room.stored()) == 5, "everything is cold"


def test_large_idle_state_is_written_bit_by_bit() -> None:
    room = StateRoom(StateSettings(cold_snapshot_interval_ms=1000))
    batches = [StateBatch(2 * number, 2 * number, 0, 1) for number in range(2000)]
    for partition in range(30):
        key = KEY._replace(partition=partition)
        room.initialize(key)
        room.write(*batches, key=key)
    before = len(room.log.batches)
    room.pass_ms(2000)
    assert len(room.log.batches) > before + 5
    assert max(map(len, room.log.batches)) < 300_000
    assert room.stored()[60:] == ["snapshot 1"] * 30


def test_a_tombstone_ends_it() -> None:
    room = StateRoom()
    room.initialize()
    room.delete()
    assert room.stored() == ["snapshot 0", "tombstone"]
    assert room.machine.partitions == {}
    assert room.machine.needed_from == 1
    room.delete()
    assert len(room.stored()) == 2


def test_deleted_topics_are_forgotten() -> None:
    room = StateRoom()
    room.initialize()
    room.initialize(KEY._replace(topic_id=bytes(16)))
    ticket: Ticket[None] = Ticket(lambda code: None)
    room.shard.run(lambda machine, _: machine.topics_deleted({TOPIC_ID}, ticket), ticket)
    assert ticket.is_settled
    assert list(room.machine.partitions) == [KEY._replace(topic_id=bytes(16))]


async def test_an_update_whose_snapshot_was_pruned_is_no_harm() -> None:
    room = StateRoom(StateSettings(updates_per_snapshot=1))
    room.initialize()
    room.write(StateBatch(0, 3, 2, 1))
    room.write(StateBatch(4, 5, 2, 1))
    assert room.stored() == ["snapshot 0", "update 0", "snapshot 1"]
    del room.log.batches[0]
    room.log.log_start = 1
    again = await room.reloaded()
    assert again.read().batches == room.read().batches


def test_what_cannot_be_written_has_not_happened() -> None:
    room = StateRoom()
    room.initialize()
    room.log.refusal = DiskFailure("somewhere", "write", OSError())
    assert room.write(StateBatch(0, 0, 2, 1)).error is ErrorCode.NOT_COORDINATOR
    room.log.refusal = None
    assert room.read().batches == ()


@pytest.mark.parametrize("history", range(5))
async def test_the_log_gives_back_what_was_kept(seed: int, history: int) -> None:
    chance = random.Random(seed * 1000 + history)
    room = StateRoom(
        StateSettings(updates_per_snapshot=chance.choice((0, 1, 5)), cold_snapshot_interval_ms=50)
    )
    keys = [SharePartitionKey(group, TOPIC_ID, index) for group in ("g", "h") for index in range(2)]
    for _ in range(300):
        key = chance.choice(keys)
        epoch, leader, start = chance.randrange(3), chance.randrange(3), chance.randrange(30)
        match chance.randrange(10):
            case 0:
                room.initialize(key, epoch=epoch, start=chance.choice((-1, start)))
            case 1:
                room.read(key, leader=leader)
            case 2 if chance.random() < 0.3:
                room.delete(key)
            case 3:
                room.pass_ms(20)
            case _:
                first = chance.randrange(60)
                batch = StateBatch(first, first + chance.randrange(9), chance.choice((0, 2, 4)), epoch + 1)
                room.write(batch, key=key, epoch=epoch, leader=leader, start=start, complete=start)
        if chance.random() < 0.05:
            assert (await room.reloaded()).machine.partitions == room.machine.partitions
            room = pruned(room)
            found = (await room.reloaded()).machine.partitions
            for state in (*found.values(), *room.machine.partitions.values()):
                # Initializing anew does not repeat which leaders there were: Kafka forgets them, too.
                state.highest_leader_epoch = state.leader_epoch
            assert found == room.machine.partitions
            room = await room.reloaded()


def pruned(room: StateRoom) -> StateRoom:
    """The same, without the records that are not needed."""
    needed_from = room.machine.needed_from
    log = room.log
    kept = []
    offset = log.log_start
    for batch in log.batches:
        count = int.from_bytes(batch[57:61], "big")
        if offset + count > needed_from:
            kept.append(batch)
        else:
            log.log_start = offset + count
        offset += count
    log.batches = kept
    return room


def test_keys_as_text() -> None:
    key = SharePartitionKey("a:b", TOPIC_ID, 12)
    assert key.text == "a:b:AAECAwQFBgcICQoLDA0ODw:12"
    assert SharePartitionKey.from_text(key.text) == key


@pytest.mark.parametrize(
    "text",
    [
        "",
        "g",
        "g:1",
        ":AAECAwQFBgcICQoLDA0ODw:1",
        " :AAECAwQFBgcICQoLDA0ODw:1",
        "g:AAEC:1",
        "g:AAECAwQFBgcICQoLDA0ODw:x",
    ],
)
def test_texts_that_are_no_keys(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- what is wrong is said in words that are Python's
        SharePartitionKey.from_text(text)
