"""A step runs in a process of its own: a client that hangs is ended, and the next step begins afresh.

This module is both sides: ``run_step`` starts it with ``python -m`` and reads the last line it prints.
"""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from benchmarks.peers.steps import Step, Target, steps

ROOT = Path(__file__).resolve().parent.parent.parent
REASON_LENGTH_MAX = 70
KAFKA_ERROR = re.compile(r'KafkaError\{.*str="(.*)"\}')


class StepFailed(Exception):
    """A broker gave no figures; the text says why, in a few words."""


class OutOfTime(StepFailed):
    """The step did not end; to try it again would cost as much time again."""


def run_step(step: Step, target: Target, patience: float = 1) -> dict[str, float]:
    """The values of one round; the step's limit of time is multiplied by ``patience``.  Raises StepFailed."""
    seconds_max = step.seconds_max * patience
    command = [sys.executable, "-m", "benchmarks.peers.isolated"]
    arguments = [step.title, target.address, str(target.pid), str(target.share)]
    process = subprocess.Popen(
        [*command, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        start_new_session=True,  # so that what it started can be ended with it
    )
    try:
        said, _ = process.communicate(timeout=seconds_max)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise OutOfTime(f"no result in {seconds_max:g} s") from None
    return read_result(said, process.returncode)


def read_result(said: str, exit_code: int) -> dict[str, float]:
    """What the other side printed last.  Raises StepFailed."""
    try:
        result = json.loads(said.splitlines()[-1])
    except (IndexError, ValueError):
        raise StepFailed(f"the client ended with {exit_code}") from None
    if "failed" in result:
        raise StepFailed(result["failed"])
    return {str(name): float(value) for name, value in result["values"].items()}


def few_words(error: BaseException) -> str:
    """An exception in one short line."""
    said = str(error)
    of_librdkafka = KAFKA_ERROR.search(said)
    words = " ".join((of_librdkafka[1] if of_librdkafka else said).split()) or type(error).__name__
    return words if len(words) <= REASON_LENGTH_MAX else words[: REASON_LENGTH_MAX - 1] + "…"


def main() -> int:
    title, address, pid, share = sys.argv[1:]
    (step,) = (each for each in steps(with_ten_thousand=True) if each.title == title)
    try:
        values = step.measure(Target(address, int(pid), float(share)))
    except Exception as error:
        print(json.dumps({"failed": few_words(error)}))
        return 1
    print(json.dumps({"values": values}))
    sys.stdout.flush()
    os._exit(0)  # a client library may take long to let go of a broker, and has nothing more to say


if __name__ == "__main__":
    sys.exit(main())
