import pytest

from storage.checkpoints import format_epochs, format_offsets, read_epochs, read_offsets
from storage.errors import CorruptFile, DiskFailure
from storage.memory_filesystem import MemoryFileSystem


def stored(text: bytes) -> MemoryFileSystem:
    memory = MemoryFileSystem()
    memory.open("file", create=True).pwrite(text, 0)
    return memory


def test_offsets_as_kafka_writes_them() -> None:
    offsets = {("orders", 3): 17, ("a.b_c-d", 0): 0}
    text = b"0\n2\norders 3 17\na.b_c-d 0 0\n"
    assert format_offsets(offsets) == text
    assert read_offsets(stored(text), "file") == offsets
    assert format_offsets({}) == b"0\n0\n"


def test_epochs_as_kafka_writes_them() -> None:
    text = b"0\n2\n0 0\n3 500\n"
    assert format_epochs([(0, 0), (3, 500)]) == text
    assert read_epochs(stored(text), "file") == [(0, 0), (3, 500)]


def test_fields_are_split_at_any_space() -> None:
    assert read_offsets(stored(b"0\r\n1\r\norders \t 3  17"), "file") == {("orders", 3): 17}


@pytest.mark.parametrize("text", [b"", b"0\n", b"0\n0\n"])
def test_no_entries(text: bytes) -> None:
    assert read_offsets(stored(text), "file") == {}
    assert read_offsets(MemoryFileSystem(), "file") == {}


@pytest.mark.parametrize(
    "text",
    [
        b"1\n0\n",
        b"x\n0\n",
        b"0\nx\n",
        b"0\n2\norders 3 17\n",
        b"0\n0\norders 3 17\n",
        b"0\n1\norders 3\n",
        b"0\n1\norders three 17\n",
        b"0\n1\norders 3 17 18\n",
        b"0\n1\norders 3 9223372036854775808\n",
        b"0\n1\norders 3 -1\n",
        b"0\n1\n3 9223372036854775808\n",
        b"0\n1\n2147483648 17\n",
        b"0\n1\n\n",
        b"\xff\xfe",
    ],
)
def test_damage_is_an_error_that_names_the_file(text: bytes) -> None:
    with pytest.raises(CorruptFile, match="file") as damage:
        read_offsets(stored(text), "file")
    assert damage.value.path == "file"
    with pytest.raises(CorruptFile):
        read_epochs(stored(text), "file")


def test_a_checkpoint_that_cannot_be_read_is_named() -> None:
    memory = MemoryFileSystem()
    memory.make_directory("file")
    for read in (read_offsets, read_epochs):
        with pytest.raises(DiskFailure, match="cannot read file: Is a directory"):
            read(memory, "file")
