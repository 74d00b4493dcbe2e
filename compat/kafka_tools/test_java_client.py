"""The Java client's transactions, of the second protocol."""

import subprocess
from pathlib import Path

import pytest

from compat.broker_process import BrokerProcess
from compat.java_programs import program_command
from compat.python_clients import CLIENTS
from compat.scenarios.python.stage import Stage

pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).resolve().parent


def test_transactions_are_committed_aborted_and_fenced(kafka_jars: Path, ottla: BrokerProcess) -> None:
    with Stage(CLIENTS["confluent-kafka"], ottla.address) as stage:
        topic = stage.topic()
    command = program_command(PROGRAMS, "Transactions", ottla.address, topic)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=100)
    assert done.stdout.splitlines() == ["fenced", "[value0, value2, value4, last] 104"]
