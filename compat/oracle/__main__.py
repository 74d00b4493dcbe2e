"""``python -m compat.oracle definitions``, ``run`` or ``tool NAME [ARGUMENTS]``."""

import signal
import sys
import tempfile
from pathlib import Path

from compat.oracle.definitions import differences
from compat.oracle.jars import KafkaMissing, find_jars
from compat.oracle.java import TOOLS, run_tool
from compat.oracle.kafka import kafka_node


def check_definitions() -> int:
    found = differences(find_jars())
    for line in found:
        print(line)
    print(f"{len(found)} differences from the definitions in Kafka's jars")
    return 1 if found else 0


def run_node() -> int:
    with tempfile.TemporaryDirectory() as folder, kafka_node(Path(folder)) as node:
        print(f"Apache Kafka listens on {node.bootstrap}; Ctrl-C stops it", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    return 0


def main() -> int:
    action, *arguments = sys.argv[1:] or ["definitions"]
    try:
        match action, arguments:
            case "definitions", []:
                return check_definitions()
            case "run", []:
                return run_node()
            case "tool", [name, *rest] if name in TOOLS:
                done = run_tool(name, *rest)
                print(done.output, end="")
                print(done.errors, end="", file=sys.stderr)
                return done.exit_code
            case _:
                print(__doc__, f"The tools: {', '.join(sorted(TOOLS))}", sep="\n", file=sys.stderr)
                return 2
    except KafkaMissing as missing:
        print(missing, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
