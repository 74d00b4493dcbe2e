"""How commands print: lines that any terminal can show, to readers that may go away."""

import json
import os
import sys
from collections.abc import Callable

from storage.errors import StorageError

EXIT_UNUSABLE = 2
"""Nothing could be done: wrong arguments, or what they name is not there or in use."""

EXIT_UNHEARD = 141
"""Nobody reads any more; what a shell says of a command that was ended by that."""


def run_printing(name: str, run: Callable[[], int], *, as_json: bool = False) -> int:
    """Run a command and give its exit status; what it raises on purpose becomes one line.

    It ends quietly if the reader of its output goes away, as ``head`` does.  ``as_json`` is whether that
    reader expects an object a line.
    """
    try:
        status = run()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        _print_no_more()
        return EXIT_UNHEARD
    except StorageError as error:
        text = str(error)
    except OSError as error:
        text = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    try:
        sys.stdout.flush()
    except OSError:  # of a full disk, say: what is left of the output would fail once more, at the very end
        _print_no_more()
        as_json = False
    write_failure(name, text, as_json=as_json)
    return EXIT_UNUSABLE


def _print_no_more() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_failure(name: str, text: str, *, as_json: bool, **facts: str) -> None:
    """Say what could not be done: where people look for it, or as an object among the others."""
    if as_json:
        write_line(json.dumps({**facts, "kind": "failure", "text": text}))
    sys.stdout.flush()
    if not as_json:
        sys.stderr.write(f"ottla {name}: {printable(text)}\n")


def write_line(text: str) -> None:
    """Write a line to standard output, whatever letters it has."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    if encoding.lower() != "utf-8" or not text.isprintable():
        text = printable(text).encode(encoding, "backslashreplace").decode(encoding)
    sys.stdout.write(text + "\n")


def printable(text: str) -> str:
    """``text`` with escapes for what would move the cursor, or is no letter at all."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
