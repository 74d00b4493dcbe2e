"""``python -m tests.storage.crashes --histories 10000 --seed 7``: as many histories of crashing logs.

Ends with the first one that fails, cut short to the steps that matter.
"""

import argparse
import secrets
import sys
import time
import traceback

from tests.storage.crashes.histories import make_history, play, shortest
from tests.storage.crashes.mutations import MISTAKES, history_that_shows


def look_for_mistakes(tried_max: int) -> int:
    """Whether all that ``mutations`` can do wrong is seen in one of so many histories."""
    unseen = 0
    for name in MISTAKES:
        history = history_that_shows(name, tried_max)
        unseen += history is None
        print(f"{name}: {'not seen' if history is None else f'seen in history {history.seed!r}'}", flush=True)
    return 1 if unseen else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.storage.crashes", description=__doc__)
    parser.add_argument("--histories", type=int, default=10_000)
    parser.add_argument("--seed", default=str(secrets.randbits(32)), help="any text; by default a new one")
    parser.add_argument("--mistakes", action="store_true", help="show that mistakes in storage would be seen")
    parser.add_argument("--first", type=int, default=0, help="the number of the first history")
    arguments = parser.parse_args()
    if arguments.mistakes:
        return look_for_mistakes(arguments.histories)
    print(f"{arguments.histories} histories from seed {arguments.seed}", flush=True)
    start = time.monotonic()
    for number in range(arguments.first, arguments.first + arguments.histories):
        history = make_history(f"{arguments.seed} {number}")
        failure = play(history)
        if failure is not None:
            print(
                f"history {number} fails; repeat with --seed {arguments.seed} --first {number} --histories 1"
            )
            history, failure = shortest(history, failure)
            print(history)
            traceback.print_exception(failure.error)
            return 1
        if sys.stderr.isatty() and number % 50 == 0:
            print(f"\r{number}", end="", file=sys.stderr, flush=True)
    print(f"nothing was lost in {arguments.histories} histories; {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
