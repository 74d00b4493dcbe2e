"""The log directories of a node: which it takes, which it can do without, and whose they are."""

import errno
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO

import pytest

from broker.clock import BrokerClock
from broker.config.broker_config import BrokerConfig
from broker.errors import StartupError
from broker.identifiers import Identifiers
from broker.logs import Log
from broker.node_directories import NodeDirectories, cordoned_ids, hold_directories, identify
from broker.raft.voters import VoterEndpoint
from broker.services import Services
from protocol.uuids import LOST_DIRECTORY
from storage.errors import CorruptFile, DirectoryLocked, DiskFailure, UnexpectedDirectory
from storage.memory_filesystem import MemoryFileSystem
from storage.node_files import MetaProperties, write_meta_properties

A, B, C = "/a", "/b", "/c"
VOTERS = (VoterEndpoint("CONTROLLER", "127.0.0.1", 9093),)


class Node:
    """Starts as far as this module goes, again and again."""

    def __init__(self) -> None:
        self.file_system = MemoryFileSystem()
        self.lines = StringIO()
        self.services = Services()

    @contextmanager
    def started(self, paths: Sequence[str] = (A, B), **settings: str) -> "Iterator[NodeDirectories]":
        self.services.clock = BrokerClock()
        self.services.log = Log(self.lines)
        self.services.identifiers = Identifiers()
        named: Mapping[str, str] = {name.replace("_", "."): value for name, value in settings.items()}
        self.services.config = BrokerConfig({"log.dirs": ",".join(paths), **named})
        with hold_directories(self.services, self.file_system, open_files_max=100) as directories:
            identify(self.services, directories, VOTERS, None, self.file_system)
            yield directories
            for directory in directories.held:
                directory.close()

    def names(self, path: str) -> list[str]:
        return sorted(self.file_system.list_names(path))

    def rewrite(self, path: str, **changes: object) -> None:
        with self.started() as directories:
            (found,) = [each for each in directories.held if each.path == path]
            assert found.properties is not None
            properties = found.properties._replace(**changes)  # type: ignore[arg-type]
        write_meta_properties(self.file_system, path, properties)


def refuse(
    node: Node, error: type[Exception], text: str, paths: Sequence[str] = (A, B), **settings: str
) -> None:
    """The node does not start; ``text`` may leave something out with three dots."""
    with pytest.raises(error) as refused, node.started(paths, **settings):
        pass
    position = 0
    for part in text.split("..."):
        position = str(refused.value).index(part, position)


@pytest.fixture
def node() -> Node:
    return Node()


def test_new_directories_are_formatted_and_keep_what_they_are(node: Node) -> None:
    with node.started() as directories:
        ids = [directory.id for directory in directories.online]
        assert None not in ids
        assert len(set(ids)) == 2
        assert directories.metadata is directories.online[0]
        assert directories.held == directories.online
        cluster_id = node.services.cluster_id
    assert "__cluster_metadata-0" in node.names(A)
    assert "__cluster_metadata-0" not in node.names(B)
    with node.started() as directories:
        assert [directory.id for directory in directories.online] == ids
        assert node.services.cluster_id == cluster_id


def test_their_order_may_change_but_not_where_the_metadata_are(node: Node) -> None:
    with node.started(metadata_log_dir=B) as directories:
        assert directories.metadata.path == B
        assert [directory.path for directory in directories.online] == [A, B]
    with node.started([B, A], metadata_log_dir=B):
        pass
    refuse(node, StartupError, "Found unexpected metadata location in data directory `/b`")


def test_a_directory_for_the_metadata_alone(node: Node) -> None:
    with node.started(metadata_log_dir=C) as directories:
        assert [directory.path for directory in directories.online] == [A, B]
        assert [directory.path for directory in directories.held] == [C, A, B]
    node.file_system.make_directory("/c/t-0")
    refuse(node, StartupError, "/c holds partitions, but is not among log.dirs", metadata_log_dir=C)


def test_one_that_is_new_among_others_is_refused(node: Node) -> None:
    with node.started():
        pass
    refuse(node, StartupError, "No `meta.properties` found in /c ...--ignore-formatted", [A, B, C])
    assert ".kafka_cleanshutdown" in node.names(A), "nothing has changed"
    assert "meta.properties" not in node.names(C)


def test_one_that_is_new_while_another_is_offline_is_refused(node: Node) -> None:
    node.file_system.make_directory(B)
    node.file_system.refuse("open", errno.EIO, path_suffix="/b/.lock")
    refuse(node, StartupError, "No `meta.properties` found in /a")


def test_one_that_is_left_out_is_no_matter(node: Node) -> None:
    with node.started():
        pass
    with node.started([A]) as directories:
        assert len(directories.online) == 1


def test_a_directory_named_twice(node: Node) -> None:
    refuse(node, StartupError, "Duplicate log directory found: /a, /a", [A, "/b/../a"])


class TestIdentities:
    def test_of_two_clusters(self, node: Node) -> None:
        node.rewrite(B, cluster_id="another")
        refuse(
            node, StartupError, "Invalid cluster.id in: /b/meta.properties. Expected ..., but read another"
        )

    def test_of_two_nodes(self, node: Node) -> None:
        node.rewrite(B, node_id=7)
        refuse(node, StartupError, "/b belongs to node 7, but node.id is 1")

    def test_shared(self, node: Node) -> None:
        with node.started() as directories:
            first = directories.online[0].id
        node.rewrite(B, directory_id=first)
        refuse(node, StartupError, "Duplicate directory ID ... was the ID of /a, but also of /b")

    def test_reserved(self, node: Node) -> None:
        node.rewrite(B, directory_id=LOST_DIRECTORY)
        with (
            pytest.raises(
                StartupError, match="Invalid reserved directory ID AAAAAAAAAAAAAAAAAAAAAg found in /b"
            ),
            node.started(),
        ):
            pass

    def test_missing_is_made_up_for(self, node: Node) -> None:
        node.rewrite(B, directory_id=None)
        with node.started() as directories:
            given = directories.online[1].id
        assert given is not None
        with node.started() as directories:
            assert directories.online[1].id == given


class TestFailures:
    def test_one_that_cannot_be_used_is_left_out(self, node: Node) -> None:
        with node.started():
            pass
        node.file_system.refuse("open", errno.EIO, path_suffix="/b/.lock")
        with node.started() as directories:
            assert [directory.path for directory in directories.online] == [A]
            assert list(directories.offline) == [B]
        assert "log directory /b is offline" in node.lines.getvalue()

    @pytest.mark.parametrize(
        "text", [b"version=7\ncluster.id=c\nnode.id=1\n", b"version=1\nnode.id=1\n", b"\xff"]
    )
    def test_one_that_does_not_say_whose_it_is_is_left_out(self, node: Node, text: bytes) -> None:
        with node.started():
            pass
        node.file_system.replace_file(f"{B}/meta.properties", text, sync=True)
        with node.started() as directories:
            assert [directory.path for directory in directories.online] == [A]
            assert list(directories.offline) == [B]
        assert "log directory /b is offline: /b/meta.properties: " in node.lines.getvalue()
        node.file_system.replace_file(f"{A}/meta.properties", text, sync=True)
        refuse(node, CorruptFile, "/a/meta.properties")

    def test_the_one_of_the_metadata_is_needed(self, node: Node) -> None:
        with node.started():
            pass
        node.file_system.refuse("open", errno.EIO, path_suffix="/a/.lock")
        refuse(node, DiskFailure, "/a")

    def test_one_of_them_is_needed(self, node: Node) -> None:
        with node.started([A, B], metadata_log_dir=C):
            pass
        node.file_system.refuse("open", errno.EIO, path_suffix="/a/.lock")
        node.file_system.refuse("open", errno.EIO, path_suffix="/b/.lock")
        refuse(
            node, StartupError, "none of the log directories /a, /b can be used", [A, B], metadata_log_dir=C
        )

    def test_one_that_somebody_else_holds_is_no_failure(self, node: Node) -> None:
        with node.started():
            pass
        held = node.file_system.lock("/b/.lock")
        assert held is not None
        refuse(node, DirectoryLocked, "/b")
        held.release()
        with node.started():
            pass

    def test_nor_one_with_something_else_in_it(self, node: Node) -> None:
        with node.started():
            pass
        node.file_system.make_directory("/b/photos")
        refuse(node, UnexpectedDirectory, "/b/photos")


def test_which_are_cordoned(node: Node) -> None:
    with node.started() as directories:
        first, second = directories.online
        assert cordoned_ids(directories.online, []) == ()
        assert cordoned_ids(directories.online, [B]) == (second.id,)
        assert cordoned_ids(directories.online, ["/a/../b/"]) == (second.id,)
        assert cordoned_ids(directories.online, ["*"]) == (first.id, second.id)
        assert cordoned_ids(directories.online, ["/elsewhere"]) == ()


def test_a_directory_from_zookeeper_s_times_gets_what_it_lacks(node: Node) -> None:
    node.file_system.make_directory(A)
    write_meta_properties(node.file_system, A, MetaProperties(None, 3, None, version=0))
    with node.started([A]) as directories:
        assert node.services.node_id == 3
        assert directories.online[0].id is not None


def test_who_begins_a_cluster_and_names_others_is_told_so() -> None:
    for servers, is_told in (("localhost:9093", False), ("other:9094,other:9095", True)):
        node = Node()
        with node.started(controller_quorum_bootstrap_servers=servers):
            pass
        assert ("begins a cluster of its own" in node.lines.getvalue()) == is_told
    with node.started(controller_quorum_bootstrap_servers=servers):
        pass
    assert node.lines.getvalue().count("begins a cluster of its own") == 1
