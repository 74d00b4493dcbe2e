"""``ottla handover``: let another node of the cluster be the controller."""

import argparse
import os
import sys
from collections.abc import Sequence

import trio

from broker.network.call import Address
from broker.network.node_client import NodeUnreachable
from ottla.handover import Handover, HandoverRefused
from ottla.output import EXIT_UNUSABLE, write_failure, write_line

EXIT_TOO_SLOW = 1


def hand_over(arguments: Sequence[str]) -> int:
    """Run the command; returns its exit status."""
    options = read_options(arguments)
    handover = Handover(options.bootstrap_server, options.to, say=_say)
    try:
        trio.run(_run, handover, options.timeout)
    except trio.TooSlowError:
        why = "" if handover.hindrance is None else f" ({handover.hindrance})"
        write_failure(
            "handover", f"not done after {options.timeout:g} s{why}; do it again to go on", as_json=False
        )
        return EXIT_TOO_SLOW
    except (HandoverRefused, NodeUnreachable) as refused:
        write_failure("handover", str(refused), as_json=False)
        return EXIT_UNUSABLE
    return 0


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; ends the process for ``--help`` and mistakes."""
    parser = argparse.ArgumentParser(
        prog="ottla handover",
        description="Lets another node of the cluster, Ottla's or Apache Kafka's, be the controller, while "
        "clients go on. The node must run as a controller of this cluster already, formatted with "
        "--no-initial-controllers, and every broker's list of controllers must name it. What was begun and "
        "not finished is finished by doing it again; --to the old one is the way back.",
        epilog="Exit status: 0; 1 if it takes too long; 2 if nothing can be done.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--bootstrap-server", required=True, type=_address, metavar="HOST:PORT", help="any broker"
    )
    parser.add_argument("--to", required=True, type=int, metavar="ID", help="the node that is to lead")
    parser.add_argument(
        "--timeout", type=seconds, default=60.0, metavar="SECONDS", help="how long to try; default: 60"
    )
    return parser.parse_args(arguments)


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no HOST:PORT")
    return Address(host.strip("[]"), int(port))


def seconds(text: str) -> float:
    """``text`` as a time to wait; ``ValueError`` if it is none."""
    count = float(text)
    if not count >= 0:  # NaN is not
        raise ValueError(text)
    return count


async def _run(handover: Handover, timeout_seconds: float) -> None:
    with trio.fail_after(timeout_seconds):
        await handover.run()


def _say(text: str) -> None:
    try:
        write_line(text)
        sys.stdout.flush()
    except OSError:  # nobody reads any more: no reason to leave the rest undone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
