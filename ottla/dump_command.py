"""``ottla dump``: show what is in the files of a log directory."""

import argparse
import json
import os
import stat
from collections.abc import Sequence
from typing import Any

from ottla.output import EXIT_UNUSABLE, run_printing, write_failure, write_line
from ottla.progress import Progress
from storage.dumping.files import AUTO, DECODERS, UnknownFile, Wanted, dump_file
from storage.dumping.values import Item
from storage.errors import DiskFailure
from storage.verification.read_only import ReadOnlyFileSystem

EXIT_SOUND = 0
EXIT_DAMAGED = 1

NO_DECODER = "none"

LETTERS_MAX = 300
"""Letters of one value that a line for people has."""

_LAST_YEAR_MS = 253_402_300_800_000


def dump_files(arguments: Sequence[str]) -> int:
    """Run the command; returns its exit status."""
    options = read_options(arguments)
    return run_printing("dump", lambda: _dump(options), as_json=options.json)


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; ends the process for ``--help`` and mistakes."""
    parser = argparse.ArgumentParser(
        prog="ottla dump",
        description="Shows what is in files of a log directory: segments (.log), indexes (.index, "
        ".timeindex, .txnindex), producer snapshots (.snapshot), metadata snapshots (.checkpoint), leader "
        "epochs and other checkpoints, meta.properties, partition.metadata, quorum-state. Only reads.",
        epilog="Exit status: 0; 1 if a file is damaged, after all of it that can be read; 2 if a file is "
        "none of these, or is not there: the others are shown all the same.",
        allow_abbrev=False,
    )
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument(
        "--records", "--deep", action="store_true", help="of logs show not only batches, but records"
    )
    parser.add_argument(
        "--decode",
        choices=[*DECODERS, AUTO, NO_DECODER],
        help="show records, and what those of internal topics mean; auto, which is the default of --records, "
        "goes by the folder's name",
    )
    parser.add_argument(
        "--json", action="store_true", help="an object a line; whole values, which are cut short otherwise"
    )
    return parser.parse_args(arguments)


def _dump(options: argparse.Namespace) -> int:
    file_system = ReadOnlyFileSystem()
    decoder = options.decode or AUTO
    wanted = Wanted(
        shows_records=options.records or options.decode is not None,
        decoder=None if decoder == NO_DECODER else decoder,
    )
    progress = Progress(sum(_size(path) for path in options.files))
    is_damaged = False
    status = EXIT_SOUND
    for path in options.files:
        try:
            _check_is_file(path)
            if not options.json:
                write_line(path)
            for item in dump_file(file_system, path, wanted, progress.moved):
                is_damaged = is_damaged or item["kind"] == "damage"
                progress.hide()
                write_line(json.dumps({"file": path, **item}) if options.json else _as_text(item))
        except (DiskFailure, UnknownFile) as error:
            progress.hide()
            write_failure("dump", str(error), as_json=options.json, file=path)
            status = EXIT_UNUSABLE
    progress.hide()
    return status or (EXIT_DAMAGED if is_damaged else EXIT_SOUND)


def _check_is_file(path: str) -> None:
    try:
        is_directory = stat.S_ISDIR(os.stat(path).st_mode)
    except FileNotFoundError:
        raise DiskFailure(path, "dump", FileNotFoundError(0, "no such file")) from None
    except OSError as error:
        raise DiskFailure(path, "dump", error) from error
    if is_directory:
        raise DiskFailure(path, "dump", IsADirectoryError(0, "it is a directory"))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0  # told when it is opened


# For people


def _as_text(item: Item) -> str:
    kind = item["kind"]
    if kind == "batch":
        return "  " + _batch_text(item)
    if kind == "record":
        return "    " + _record_text(item)
    if kind == "damage":
        where = "" if item["position"] is None else f"at byte {item['position']}: "
        return f"  DAMAGED {where}{item['text']}"
    if kind == "padding":
        room = f"{item['size']} bytes of zeros, the room that Kafka keeps while it runs"
        return f"  byte {item['position']}: {room}"
    return "  " + ", ".join(
        f"{name} {_value_text(name, value)}" for name, value in item.items() if name != "kind"
    )


def _batch_text(item: Item) -> str:
    count = item["count"]
    parts = [
        f"byte {item['position']}: offsets {item['baseOffset']} to {item['lastOffset']}",
        f"{count} record{'s' * (count != 1)}",
        f"{item['size']} bytes",
        f"leader epoch {item['partitionLeaderEpoch']}",
        f"{item['timestampType']} {_time_text(item['maxTimestamp'])}",
        f"compression {item['compression']}",
        f"CRC {item['crc']}" + ("" if item["isValid"] else " (wrong)"),
    ]
    if item["producerId"] >= 0:
        sequences = (
            f" sequences {item['baseSequence']} to {item['lastSequence']}"
            if item["baseSequence"] >= 0
            else ""
        )
        parts.append(f"producer {item['producerId']} epoch {item['producerEpoch']}{sequences}")
    if item["isTransactional"]:
        parts.append("transactional")
    if item["isControl"]:
        parts.append("control")
    if item["deleteHorizonMs"] is not None:
        parts.append(f"delete horizon {_time_text(item['deleteHorizonMs'])}")
    return ", ".join(parts)


def _record_text(item: Item) -> str:
    parts = [f"offset {item['offset']}: {_time_text(item['timestamp'])}"]
    if item["sequence"] >= 0:
        parts.append(f"sequence {item['sequence']}")
    if "controlType" in item:
        parts.append(item["controlType"])
    else:
        parts.append(f"key {_value_text('key', item['key'])}")
    parts.append(f"value {_value_text('value', item['value'])}")
    if item["headers"]:
        parts.append(f"headers {_value_text('headers', item['headers'])}")
    return ", ".join(parts)


def _value_text(name: str, value: Any) -> str:
    if name.lower().endswith("timestamp") and isinstance(value, int):
        return _time_text(value)
    if isinstance(value, dict) and "data" in value:
        # A message: its name and version, and then its fields.
        version = f" v{value['version']}" if "version" in value else ""
        return f"{value['name']}{version} {json.dumps(value['data'], ensure_ascii=False)}"
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > LETTERS_MAX:
        return f"{text[:LETTERS_MAX]}… ({len(text)} letters)"
    return text


def _time_text(timestamp_ms: int) -> str:
    """Milliseconds since 1970, and what that is in UTC."""
    if not 0 <= timestamp_ms < _LAST_YEAR_MS:
        return str(timestamp_ms)
    from datetime import UTC, datetime

    moment = datetime.fromtimestamp(timestamp_ms // 1000, UTC)
    return f"{timestamp_ms} ({moment:%Y-%m-%dT%H:%M:%S}.{timestamp_ms % 1000:03d}Z)"
