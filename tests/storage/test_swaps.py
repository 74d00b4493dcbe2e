"""What a cleaner leaves when the process ends at any point of its renames."""

from random import Random

import pytest

from protocol.records.batch import RecordBatch
from storage.memory_filesystem import Names, PowerCut
from storage.swaps import finish_swaps
from tests.storage.builders import DIRECTORY, World, batch


@pytest.fixture
def world() -> World:
    return World()


def put(world: World, name: str, content: bytes = b"") -> None:
    world.memory.open(f"{DIRECTORY}/{name}", create=True).pwrite(content, 0)


def segment(base_offset: int, count: int) -> bytes:
    first: RecordBatch = batch(*[b"x"] * count)
    first.set_base_offset(base_offset)
    return bytes(first.data)


def name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def test_nothing_to_do(world: World) -> None:
    put(world, name(0, ".log"))
    put(world, "leader-epoch-checkpoint")
    assert sorted(finish_swaps(world.services, DIRECTORY)) == world.names()


def test_what_is_marked_as_deleted_goes(world: World) -> None:
    put(world, name(0, ".log.deleted"))
    put(world, name(0, ".index.deleted"))
    put(world, "00000000000000000005-0000000001.checkpoint.deleted")
    assert finish_swaps(world.services, DIRECTORY) == ["00000000000000000005-0000000001.checkpoint.deleted"]


def test_cleaned_files_were_not_finished(world: World) -> None:
    put(world, name(0, ".log"), segment(0, 3))
    put(world, name(0, ".log.cleaned"), segment(0, 1))
    put(world, name(0, ".index.cleaned"))
    assert finish_swaps(world.services, DIRECTORY) == [name(0, ".log")]
    assert world.names() == [name(0, ".log")]


def test_swapped_files_replace_the_segments_that_they_cover(world: World) -> None:
    for base in (0, 10, 20):
        for suffix in (".log", ".index", ".timeindex", ".snapshot"):
            put(world, name(base, suffix), segment(base, 10) if suffix == ".log" else b"old")
    put(world, "leader-epoch-checkpoint")
    for suffix, content in ((".log", segment(0, 20)), (".index", b"new"), (".timeindex", b"new")):
        put(world, name(0, suffix + ".swap"), content)
    expected = [
        name(0, ".index"), name(0, ".log"), name(0, ".snapshot"), name(0, ".timeindex"),
        name(20, ".index"), name(20, ".log"), name(20, ".snapshot"), name(20, ".timeindex"),
        "leader-epoch-checkpoint",
    ]  # fmt: skip
    assert sorted(finish_swaps(world.services, DIRECTORY)) == expected
    assert world.names() == expected
    assert world.memory.read_file(f"{DIRECTORY}/{name(0, '.log')}") == segment(0, 20)
    assert world.memory.read_file(f"{DIRECTORY}/{name(0, '.index')}") == b"new"


def test_renames_that_were_cut_short_are_finished(world: World) -> None:
    """The log got its plain name already, its index did not."""
    put(world, name(0, ".log"), segment(0, 20))
    put(world, name(0, ".index.swap"), b"new")
    put(world, name(10, ".log.deleted"), segment(10, 10))
    assert sorted(finish_swaps(world.services, DIRECTORY)) == [name(0, ".index"), name(0, ".log")]


def test_an_unfinished_split_is_undone(world: World) -> None:
    """Swap files at or above the first cleaned one: their source is still there."""
    put(world, name(0, ".log"), segment(0, 20))
    put(world, name(0, ".log.cleaned"), segment(0, 10))
    put(world, name(10, ".log.swap"), segment(10, 10))
    assert finish_swaps(world.services, DIRECTORY) == [name(0, ".log")]
    assert world.memory.read_file(f"{DIRECTORY}/{name(0, '.log')}") == segment(0, 20)
    assert len(world.reports) == 1


def test_a_swap_below_an_unfinished_cleaning_is_finished(world: World) -> None:
    put(world, name(0, ".log"), segment(0, 10))
    put(world, name(0, ".log.swap"), segment(0, 10)[:-1] + b"y")
    put(world, name(10, ".log"), segment(10, 10))
    put(world, name(10, ".log.cleaned"), segment(10, 1))
    assert sorted(finish_swaps(world.services, DIRECTORY)) == [name(0, ".log"), name(10, ".log")]
    assert world.memory.read_file(f"{DIRECTORY}/{name(0, '.log')}").endswith(b"y")


def test_files_that_only_end_like_a_cleaner_s_are_left_alone(world: World) -> None:
    put(world, name(0, ".log"), segment(0, 3))
    put(world, "hello.log.swap")
    put(world, "hello.log.cleaned")
    put(world, name(0, ".log.swap"), segment(0, 2))
    assert sorted(finish_swaps(world.services, DIRECTORY)) == [
        name(0, ".log"),
        "hello.log.cleaned",
        "hello.log.swap",
    ]


def test_a_power_cut_does_not_bring_back_what_a_finished_swap_has_replaced() -> None:
    """Whatever names the file system keeps, and at whatever change the power was cut."""
    for seed in range(400):
        chance = Random(seed)
        world = World()
        for base in (0, 10):
            put(world, name(base, ".log"), segment(base, 10))
            put(world, name(base, ".index"))
        for suffix in (".log", ".index", ".txnindex"):
            put(world, name(0, suffix + ".swap"), segment(0, 20) if suffix == ".log" else b"new")
        world.memory.sync_everything()
        world.memory.stop_after = chance.randrange(1, 10)
        try:
            finish_swaps(world.services, DIRECTORY)
        except PowerCut:
            pass
        world.memory.lose_power(chance, names=Names.ANY)
        left = [name(0, ".index"), name(0, ".log"), name(0, ".txnindex")]
        assert finish_swaps(world.services, DIRECTORY) == left, seed
