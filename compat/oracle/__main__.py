"""``python -m compat.oracle``: the judge, or one of its parts.

judge                 all of it: is Kafka as it is recorded, and Ottla as Kafka?  (Also without a word.)
record [SUBJECT...]   keep what a new Kafka answers; for the named subjects alone the rest stays as it is
compare               hold a new Ottla against the recording
explore SEED COUNT    tell both brokers the same, changed at random, and show where they part
grid                  show what the recording covers
definitions           compare our messages with the definitions in Kafka's jars
run                   run a Kafka until Ctrl-C
tool NAME [ARGUMENTS] run one of Kafka's tools
"""

import signal
import sys
import tempfile
from pathlib import Path

from compat.oracle import report
from compat.oracle.conversations import SUBJECTS
from compat.oracle.jars import KafkaMissing
from compat.oracle.java import TOOLS, run_tool
from compat.oracle.kafka import kafka_node
from compat.oracle.recording import read


def run_node() -> int:
    with tempfile.TemporaryDirectory() as folder, kafka_node(Path(folder)) as node:
        print(f"Apache Kafka listens on {node.bootstrap}; Ctrl-C stops it", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    return 0


def exit_code(is_well: bool) -> int:
    return 0 if is_well else 1


def main() -> int:
    action, *arguments = sys.argv[1:] or ["judge"]
    try:
        match action, arguments:
            case "judge", []:
                return exit_code(report.everything())
            case "record", subjects if SUBJECTS.issuperset(subjects):
                return exit_code(report.record(subjects))
            case "compare", []:
                return exit_code(report.ottla_answers_so(read()))
            case "explore", [seed, count] if seed.isdecimal() and count.isdecimal():
                return exit_code(report.explore_both(int(seed), int(count)))
            case "grid", []:
                return exit_code(report.show_grid(read()))
            case "definitions", []:
                return exit_code(report.definitions_agree())
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
