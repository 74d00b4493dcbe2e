"""``python -m tests.simulation --seeds 10000 --first 1``: as many histories of a cluster, one seed each.

Ends with the first one that fails, with its history cut short to the faults that matter.
"""

import argparse
import sys
import time
import traceback

from tests.simulation.histories import make_history, play, shortest
from tests.simulation.mutations import MISTAKES, history_that_shows


def look_for_mistakes(tried_max: int) -> int:
    """Whether all that ``mutations`` can do wrong is seen in one of so many histories."""
    unseen = 0
    for name in MISTAKES:
        shown = history_that_shows(name, tried_max)
        unseen += shown is None
        print(f"{name}: {'not seen' if shown is None else f'seed {shown[0].seed}: {shown[1]}'}", flush=True)
    return 1 if unseen else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--brief", action="store_true", help="short histories, as in the tests")
    parser.add_argument(
        "--first-kinds", action="store_true", help="without the kinds of faults that came later"
    )
    parser.add_argument("--lines", action="store_true", help="print all that happens")
    parser.add_argument("--whole", action="store_true", help="do not shorten the history that fails")
    parser.add_argument("--go-on", action="store_true", help="name all that fail, one a line")
    parser.add_argument("--mistakes", action="store_true", help="show that mistakes of brokers would be seen")
    arguments = parser.parse_args()
    if arguments.mistakes:
        return look_for_mistakes(arguments.seeds)
    start = time.process_time()
    events = acknowledged = failed = 0
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        history = make_history(
            str(seed),
            nodes=arguments.nodes,
            is_brief=arguments.brief,
            has_later_kinds=not arguments.first_kinds,
        )
        outcome = play(history)
        if arguments.lines:
            print("\n".join(outcome.lines))
        events += outcome.events
        acknowledged += outcome.acknowledged
        if outcome.failure is not None and arguments.go_on:
            failed += 1
            print(f"seed {seed}: {outcome.failure!r}", flush=True)
        elif outcome.failure is not None:
            print(f"seed {seed} fails; repeat with --first {seed} --seeds 1")
            if not arguments.whole:
                history, outcome = shortest(history, outcome)
                print("\n".join(outcome.lines[-60:]))
            print(history)
            traceback.print_exception(outcome.failure)
            return 1
        if seed % 100 == 0:
            print(f"\r{seed}", end="", file=sys.stderr, flush=True)
    seconds = time.process_time() - start
    found = f"{failed} fail of" if failed else "all is well in"
    print(
        f"{found} {arguments.seeds} histories: {events} events, {acknowledged} batches acknowledged, "
        f"{seconds:.1f} s"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
