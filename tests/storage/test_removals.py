from errno import EPERM

import pytest

from storage.memory_filesystem import MemoryFileSystem
from storage.removals import Removals


def test_files_are_marked_at_once_and_removed_when_due() -> None:
    memory = MemoryFileSystem()
    removals = Removals(memory)
    for name in ("a", "b"):
        memory.open(name, create=True)
    removals.mark_file("a", due_ms=100)
    removals.mark_file("b", due_ms=200)
    removals.mark_file("missing", due_ms=0)
    assert sorted(memory.list_names("")) == ["a.deleted", "b.deleted"]
    assert removals.next_due_ms == 100
    assert removals.begin(99) is None
    remove = removals.begin(100)
    assert remove is not None
    assert len(removals) == 1
    assert sorted(memory.list_names("")) == ["a.deleted", "b.deleted"], "only calling it removes"
    remove()
    assert memory.list_names("") == ["b.deleted"]


def test_folders_go_with_all_that_is_in_them() -> None:
    memory = MemoryFileSystem()
    memory.make_directory("t-0.f-delete")
    memory.open("t-0.f-delete/00000000000000000000.log.deleted", create=True)
    removals = Removals(memory)
    removals.add("t-0.f-delete", due_ms=10)
    removals.add("gone-already", due_ms=10)
    remove = removals.begin(10)
    assert remove is not None
    remove()
    assert memory.list_names("") == []
    assert removals.next_due_ms is None


def test_a_marked_file_may_have_gone_with_its_folder() -> None:
    memory = MemoryFileSystem()
    memory.make_directory("t-0")
    memory.open("t-0/a", create=True)
    removals = Removals(memory)
    removals.mark_file("t-0/a", due_ms=0)
    memory.rename("t-0", "t-0.f-delete")
    remove = removals.begin(0)
    assert remove is not None
    remove()
    assert memory.list_names("t-0.f-delete") == ["a.deleted"]


def test_what_cannot_be_removed_does_not_keep_the_others() -> None:
    memory = MemoryFileSystem()
    removals = Removals(memory)
    for name in ("a", "b", "c"):
        memory.open(name, create=True)
        removals.mark_file(name, due_ms=0)
    memory.refuse("remove", EPERM, path_suffix="a.deleted")
    remove = removals.begin(0)
    assert remove is not None
    with pytest.raises(PermissionError):
        remove()
    assert memory.list_names("") == ["a.deleted"]
