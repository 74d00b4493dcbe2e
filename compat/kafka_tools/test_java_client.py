"""The Java client's transactions, of the second protocol."""

import subprocess
from pathlib import Path

import pytest

from compat.broker_process import BrokerProcess
from compat.oracle.java import QUICK_START, java_command
from compat.python_clients import CLIENTS
from compat.scenarios.python.stage import Stage

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("Transactions.java")


def test_transactions_are_committed_aborted_and_fenced(kafka_jars: Path, ottla: BrokerProcess) -> None:
    with Stage(CLIENTS["confluent-kafka"], ottla.address) as stage:
        topic = stage.topic()
    command = java_command(str(PROGRAM), ottla.address, topic, options=QUICK_START)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=100)
    assert done.stdout.splitlines() == ["fenced", "[value0, value2, value4, last] 104"]
