import errno
from collections.abc import Callable

import pytest

from protocol.uuids import ONE_UUID, ZERO_UUID, uuid_from_text
from storage.errors import CorruptFile, DiskFailure, UnsupportedFormat
from storage.filesystem import FileSystem
from storage.memory_filesystem import MemoryFileSystem
from storage.node_files import (
    MetaProperties,
    QuorumState,
    format_properties,
    parse_properties,
    read_clean_shutdown,
    read_meta_properties,
    read_quorum_state,
    read_topic_id,
    write_clean_shutdown,
    write_meta_properties,
    write_quorum_state,
    write_topic_id,
)

DIRECTORY_ID = uuid_from_text("NaSk2IJfQniP4gK7_l4Wrw")


def directory(name: str, text: bytes) -> MemoryFileSystem:
    memory = MemoryFileSystem()
    memory.make_directory("d")
    memory.open(f"d/{name}", create=True).pwrite(text, 0)
    return memory


def empty() -> MemoryFileSystem:
    memory = MemoryFileSystem()
    memory.make_directory("d")
    memory.sync_everything()
    return memory


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("meta.properties", read_meta_properties),
        (".kafka_cleanshutdown", read_clean_shutdown),
        ("partition.metadata", read_topic_id),
        ("quorum-state", read_quorum_state),
    ],
)
def test_what_cannot_be_read_is_named(name: str, read: Callable[[FileSystem, str], object]) -> None:
    memory = MemoryFileSystem()
    memory.make_directory(f"d/{name}")
    with pytest.raises(DiskFailure, match=f"cannot read d/{name}: Is a directory"):
        read(memory, "d")


def test_what_cannot_be_written_is_named() -> None:
    memory = empty()
    memory.refuse("sync", errno.EIO, path_suffix="quorum-state.tmp")
    with pytest.raises(DiskFailure, match="cannot write d/quorum-state: Input/output error"):
        write_quorum_state(memory, "d", QuorumState(1, 2))


# meta.properties

KAFKA_4_4 = b"""#
#Sun Nov 29 17:58:00 UTC 2026
node.id=1
directory.id=NaSk2IJfQniP4gK7_l4Wrw
version=1
cluster.id=MkU3OEVBNTcwNTJENDM2Qg
"""


def test_reads_what_kafka_wrote() -> None:
    properties = read_meta_properties(directory("meta.properties", KAFKA_4_4), "d")
    assert properties == MetaProperties("MkU3OEVBNTcwNTJENDM2Qg", 1, DIRECTORY_ID)


def test_meta_properties_survive_a_power_cut() -> None:
    memory = empty()
    assert read_meta_properties(memory, "d") is None
    for properties in (
        MetaProperties("MkU3OEVBNTcwNTJENDM2Qg", 1, DIRECTORY_ID),
        MetaProperties("odd=#!: \\cluster", 0, None),
        MetaProperties(None, None, DIRECTORY_ID, version=0),
        MetaProperties(None, 5, None, version=0),
    ):
        write_meta_properties(memory, "d", properties)
        memory.lose_power()
        assert read_meta_properties(memory, "d") == properties


def test_directories_of_old_nodes_say_broker_id() -> None:
    memory = directory("meta.properties", b"version=0\nbroker.id=3\n")
    assert read_meta_properties(memory, "d") == MetaProperties(None, 3, None, version=0)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"version=one\n",
        b"version=1\nnode.id=1\n",
        b"version=1\ncluster.id=c\n",
        b"version=1\ncluster.id=c\nbroker.id=1\n",
        b"version=1\ncluster.id=c\nnode.id=x\n",
        b"version=1\ncluster.id=c\nnode.id=1\ndirectory.id=short\n",
        b"\xff",
    ],
)
def test_damaged_meta_properties(text: bytes) -> None:
    with pytest.raises(CorruptFile, match=r"d/meta\.properties"):
        read_meta_properties(directory("meta.properties", text), "d")


def test_newer_meta_properties() -> None:
    with pytest.raises(UnsupportedFormat):
        read_meta_properties(directory("meta.properties", b"version=2\n"), "d")


def test_java_properties() -> None:
    text = "# no\n! no\n\n  a = 1 \nb:2\nc\\=d=e=f\ng=\\u0041\\t\\\\\nalone\n"
    assert parse_properties(text) == {"a": "1", "b": "2", "c=d": "e=f", "g": "A\t\\", "alone": ""}
    values = {"key": "a=b:c#d!e\\f"}
    assert parse_properties(format_properties(values)) == values


# .kafka_cleanshutdown


def test_clean_shutdown_as_kafka_writes_it() -> None:
    memory = empty()
    assert read_clean_shutdown(memory, "d") is None
    write_clean_shutdown(memory, "d", 13)
    memory.lose_power()
    assert memory.read_file("d/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":13}'
    assert read_clean_shutdown(memory, "d") == 13


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"{}", b'{"brokerEpoch":"x"}'])
def test_a_clean_shutdown_that_does_not_say_more(text: bytes) -> None:
    assert read_clean_shutdown(directory(".kafka_cleanshutdown", text), "d") == -1


# partition.metadata


def test_topic_id_as_kafka_writes_it() -> None:
    memory = empty()
    assert read_topic_id(memory, "d") is None
    write_topic_id(memory, "d", ONE_UUID)
    assert memory.read_file("d/partition.metadata") == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    memory.sync_directory("d")
    memory.lose_power()
    assert read_topic_id(memory, "d") == ONE_UUID


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"version: 0\n",
        b"topic_id: AAAAAAAAAAAAAAAAAAAAAQ",
        b"version: -1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"version: 0\ntopic_id: A",
        b"version: zero\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ",
        b"\xff",
    ],
)
def test_damaged_topic_ids(text: bytes) -> None:
    with pytest.raises(CorruptFile, match=r"d/partition\.metadata"):
        read_topic_id(directory("partition.metadata", text), "d")


# quorum-state


def test_quorum_state_as_kafka_writes_it() -> None:
    memory = empty()
    assert read_quorum_state(memory, "d") is None
    write_quorum_state(memory, "d", QuorumState(leader_id=1, leader_epoch=7))
    memory.lose_power()
    assert memory.read_file("d/quorum-state") == (
        b'{"leaderId":1,"leaderEpoch":7,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
        b'"data_version":1}'
    )
    assert read_quorum_state(memory, "d") == QuorumState(1, 7, -1, ZERO_UUID)


def test_quorum_state_of_a_static_quorum() -> None:
    memory = empty()
    state = QuorumState(leader_id=-1, leader_epoch=2, voted_id=3, voters=(1, 2, 3), data_version=0)
    write_quorum_state(memory, "d", state)
    assert read_quorum_state(memory, "d") == state
    assert b'"currentVoters":[{"voterId":1},{"voterId":2},{"voterId":3}]' in memory.read_file(
        "d/quorum-state"
    )


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b'{"data_version":1}', b'{"data_version":0,"leaderId":1,"leaderEpoch":1,"votedId":1}'],
)
def test_damaged_quorum_states(text: bytes) -> None:
    with pytest.raises(CorruptFile, match="d/quorum-state"):
        read_quorum_state(directory("quorum-state", text), "d")


def test_newer_quorum_state() -> None:
    with pytest.raises(UnsupportedFormat):
        read_quorum_state(directory("quorum-state", b'{"data_version":2}'), "d")


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 20_000,
        b'{"data_version":1,"leaderId":1e999,"leaderEpoch":1,"votedId":0,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA"}',
        b'{"data_version":1,"leaderId":1,"leaderEpoch":1,"votedId":0,"votedDirectoryId":5}',
    ],
)
def test_a_quorum_state_of_values_that_cannot_be(content: bytes) -> None:
    file_system = MemoryFileSystem()
    file_system.open("quorum-state", create=True).pwrite(content, 0)
    with pytest.raises(CorruptFile):
        read_quorum_state(file_system, "")


def test_an_escape_that_is_none_is_left_as_it_is() -> None:
    assert parse_properties("a=\\uZZZZ") == {"a": "ZZZZ"}
