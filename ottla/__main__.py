"""The command: ``ottla`` starts a broker, ``ottla format`` prepares its log directory; the others look on.

``ottla verify`` checks a directory, ``ottla dump`` shows what is in a file, ``ottla nodes`` stops and starts
the nodes of a cluster that ``ottla --nodes`` has begun, ``ottla handover`` lets another node be the
controller.
"""

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent

EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    put_own_modules_first()
    have_standard_streams()
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        if given[:1] == ["format"]:
            from ottla.format_command import format_node

            return format_node(given[1:])
        if given[:1] == ["verify"]:
            from ottla.verify_command import verify_directories

            return verify_directories(given[1:])
        if given[:1] == ["dump"]:
            from ottla.dump_command import dump_files

            return dump_files(given[1:])
        if given[:1] == ["nodes"]:
            from ottla.nodes_command import control_nodes

            return control_nodes(given[1:])
        if given[:1] == ["handover"]:
            from ottla.handover_command import hand_over

            return hand_over(given[1:])
        from ottla.broker_command import run_broker

        return run_broker(given)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def put_own_modules_first() -> None:
    """Let ``broker``, ``storage`` and ``protocol`` be ours, whatever the user's folder holds.

    A wheel carries them in ``_bundle``; in a checkout they lie beside this package.
    """
    bundle = HERE / "_bundle"
    sys.path.insert(0, str(bundle if bundle.is_dir() else HERE.parent))


def have_standard_streams() -> None:
    """Let what is printed harm nobody: where the streams are closed it goes nowhere.

    A file of the data would become the closed one otherwise.  Letters that the terminal lacks are escaped.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest that is free
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
