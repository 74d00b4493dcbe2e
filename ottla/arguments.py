"""What the command lines of all of Ottla's commands have in common."""

import argparse


def command_parser(name: str, description: str, epilog: str = "") -> argparse.ArgumentParser:
    """A parser that knows where settings come from: a file, and single ones."""
    parser = argparse.ArgumentParser(prog=name, description=description, epilog=epilog, allow_abbrev=False)
    parser.add_argument(
        "properties", nargs="?", metavar="server.properties", help="settings in the syntax of Kafka's file"
    )
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="one setting; wins over the file and the environment; may be repeated",
    )
    return parser


def add_data(parser: "argparse._ActionsContainer") -> None:
    """Where the log directory is."""
    parser.add_argument("--data", metavar="DIR", help="where the data lies (log.dirs); default: ./ottla-data")
