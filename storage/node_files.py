"""The small files that say whose a directory is and how it was left.

``meta.properties`` and ``.kafka_cleanshutdown`` stand in every log directory, ``partition.metadata``
in every replica, ``quorum-state`` beside the metadata log.  What cannot be read or written raises
DiskFailure, and what holds something else CorruptFile; each names the file.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from protocol.uuids import ZERO_UUID, uuid_from_text, uuid_to_text
from storage import paths
from storage.errors import CorruptFile, UnsupportedFormat
from storage.filesystem import FileSystem
from storage.small_files import read_small_file, write_small_file

# meta.properties


class MetaProperties(NamedTuple):
    """Whose a log directory is.  A field is None where an old file does not say."""

    cluster_id: str | None
    node_id: int | None
    directory_id: bytes | None
    version: int = 1


def read_meta_properties(file_system: FileSystem, directory: str) -> MetaProperties | None:
    """None if the directory was never formatted.  Raises CorruptFile."""
    path = os.path.join(directory, paths.META_PROPERTIES)
    text = _read_text(file_system, path)
    if text is None:
        return None
    values = parse_properties(text)
    version = _number(path, values, "version")
    if version not in (0, 1):
        raise UnsupportedFormat(path, f"unknown version {version}")
    # Version 0 is what nodes had that came from ZooKeeper: another name, and not all of it.
    node_id = values.get("node.id", values.get("broker.id") if version == 0 else None)
    if version == 1 and "cluster.id" not in values:
        raise CorruptFile(path, "cluster.id is missing")
    if version == 1 and node_id is None:
        raise CorruptFile(path, "node.id is missing")
    directory_id = None
    if "directory.id" in values:
        try:
            directory_id = uuid_from_text(values["directory.id"])
        except ValueError as error:
            raise CorruptFile(path, f"directory.id: {error}") from error
    return MetaProperties(
        cluster_id=values.get("cluster.id"),
        node_id=None if node_id is None else _number(path, {"node.id": node_id}, "node.id"),
        directory_id=directory_id,
        version=version,
    )


def write_meta_properties(file_system: FileSystem, directory: str, properties: MetaProperties) -> None:
    """Replace the file, and return when it is on the device."""
    values = {"version": str(properties.version)}
    if properties.cluster_id is not None:
        values["cluster.id"] = properties.cluster_id
    if properties.node_id is not None:
        values["node.id" if properties.version else "broker.id"] = str(properties.node_id)
    if properties.directory_id is not None:
        values["directory.id"] = uuid_to_text(properties.directory_id)
    path = os.path.join(directory, paths.META_PROPERTIES)
    write_small_file(file_system, path, format_properties(values).encode("utf-8"))


def _read_text(file_system: FileSystem, path: str) -> str | None:
    content = read_small_file(file_system, path)
    try:
        return None if content is None else content.decode("utf-8")
    except UnicodeDecodeError:
        raise CorruptFile(path, "not a text file") from None


def _number(path: str, values: Mapping[str, str], name: str) -> int:
    try:
        return int(values[name])
    except KeyError:
        raise CorruptFile(path, f"{name} is missing") from None
    except ValueError:
        raise CorruptFile(path, f"{name} is no number: {values[name]!r}") from None


_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Java's properties syntax, as far as it occurs in files that Kafka writes for itself.

    That is comments, ``=`` or ``:``, and backslash escapes; no entry runs over several lines.
    """
    values: dict[str, str] = {}
    for line in text.splitlines():
        line = line.lstrip()
        if not line or line[0] in "#!":
            continue
        parts = [""]
        letters = iter(line)
        for letter in letters:
            if letter == "\\":
                letter = next(letters, "")
                if letter == "u":
                    digits = "".join([next(letters, "0") for _ in range(4)])
                    # What is no number stays as it is: nothing that matters is written like that.
                    is_number = all(digit in "0123456789abcdefABCDEF" for digit in digits)
                    parts[-1] += chr(int(digits, 16)) if is_number else digits
                else:
                    parts[-1] += _ESCAPES.get(letter, letter)
            elif letter in "=:" and len(parts) == 1:
                parts.append("")
            else:
                parts[-1] += letter
        values[parts[0].strip()] = parts[1].strip() if len(parts) > 1 else ""
    return values


def format_properties(values: Mapping[str, str]) -> str:
    """Readable for Java and for ``parse_properties``."""
    lines = ["#"]
    for name, value in values.items():
        for special in "\\=:#!":
            name = name.replace(special, "\\" + special)
            value = value.replace(special, "\\" + special)
        lines.append(f"{name}={value}")
    return "\n".join(lines) + "\n"


# .kafka_cleanshutdown

NO_BROKER_EPOCH = -1


def read_clean_shutdown(file_system: FileSystem, directory: str) -> int | None:
    """The broker epoch of a clean stop, -1 if the file does not say; None after an unclean stop.

    That the file exists is what counts: older Kafkas left it empty.
    """
    text = read_small_file(file_system, os.path.join(directory, paths.CLEAN_SHUTDOWN))
    if text is None:
        return None
    values = _json_object(text)
    epoch = values.get("brokerEpoch") if values is not None else None
    return epoch if isinstance(epoch, int) else NO_BROKER_EPOCH


def write_clean_shutdown(file_system: FileSystem, directory: str, broker_epoch: int) -> None:
    """The last step of a stop: everything else must be on the device."""
    path = os.path.join(directory, paths.CLEAN_SHUTDOWN)
    write_small_file(file_system, path, b'{"version":0,"brokerEpoch":%d}' % broker_epoch)


def _json_object(text: bytes) -> dict[str, Any] | None:
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


# partition.metadata


def read_topic_id(file_system: FileSystem, directory: str) -> bytes | None:
    """The topic id of the replica in ``directory``; None if it has none and so is a stray."""
    path = os.path.join(directory, paths.PARTITION_METADATA)
    text = _read_text(file_system, path)
    if text is None:
        return None
    values = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    try:
        version = int(values["version"])
        topic_id = uuid_from_text(values["topic_id"].strip())
    except (KeyError, ValueError):
        raise CorruptFile(path, f"malformed: {text!r}") from None
    if version < 0:
        raise CorruptFile(path, f"unknown version {version}")
    if topic_id == ZERO_UUID:
        raise CorruptFile(path, "the topic id is zero")
    return topic_id


def write_topic_id(file_system: FileSystem, directory: str, topic_id: bytes) -> None:
    """Must come before the first record: without it, records are strays.

    The content is on the device on return; its name is once the directory has been fsynced, which a
    log's first flush does.
    """
    path = os.path.join(directory, paths.PARTITION_METADATA)
    text = f"version: 0\ntopic_id: {uuid_to_text(topic_id)}"
    file_system.replace_file(path, text.encode(), sync=True)


# quorum-state


class QuorumState(NamedTuple):
    """What a node remembers of the metadata quorum's elections; -1 stands for none."""

    leader_id: int
    leader_epoch: int
    voted_id: int = -1
    voted_directory_id: bytes = ZERO_UUID
    voters: tuple[int, ...] = ()
    """Only under kraft.version 0; under 1 they are in the log."""
    data_version: int = 1
    """0 under kraft.version 0, else 1."""


def read_quorum_state(file_system: FileSystem, directory: str) -> QuorumState | None:
    """None if no election was ever noted.  Raises CorruptFile."""
    path = os.path.join(directory, paths.QUORUM_STATE)
    text = read_small_file(file_system, path)
    if text is None:
        return None
    values = _json_object(text)
    if values is None:
        raise CorruptFile(path, "not a JSON object")
    version = values.get("data_version")
    if version not in (0, 1):
        raise UnsupportedFormat(path, f"unknown data_version {version!r}")
    try:
        return QuorumState(
            leader_id=int(values["leaderId"]),
            leader_epoch=int(values["leaderEpoch"]),
            voted_id=int(values["votedId"]),
            voted_directory_id=uuid_from_text(values["votedDirectoryId"]) if version else ZERO_UUID,
            voters=() if version else tuple(int(voter["voterId"]) for voter in values["currentVoters"]),
            data_version=version,
        )
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise CorruptFile(path, f"malformed: {error!r}") from error


def write_quorum_state(file_system: FileSystem, directory: str, state: QuorumState) -> None:
    """Replace the file, and return when it is on the device: a vote must never be forgotten."""
    import json

    values: dict[str, Any]
    if state.data_version == 0:
        values = {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": state.voted_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in state.voters],
            "data_version": 0,
        }
    else:
        values = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": state.voted_id,
            "votedDirectoryId": uuid_to_text(state.voted_directory_id),
            "data_version": 1,
        }
    text = json.dumps(values, separators=(",", ":")).encode()
    write_small_file(file_system, os.path.join(directory, paths.QUORUM_STATE), text)
