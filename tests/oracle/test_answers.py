"""Ottla, as a process of its own, answers every conversation as Kafka did."""

import pytest

from compat.oracle.compare import judge
from compat.oracle.conversations import CONVERSATIONS
from compat.oracle.recording import Recording
from compat.oracle.run import hold

pytestmark = pytest.mark.slow


def test_every_answer_is_kafka_s(compared_address: str, recording: Recording) -> None:
    verdict = judge(recording, hold(compared_address, CONVERSATIONS))
    assert list(verdict.lines()) == []
