"""Kafka Streams counts exactly once on a broker that is killed meanwhile."""

from pathlib import Path

import pytest

from compat.scenarios.missing import ClientMissing
from compat.streams.kills import count_while_killed

KILLS = 2
SEED = 7
"""When the broker is killed; what it is doing then is left to the clock anyway."""


@pytest.mark.slow
def test_words_are_counted_once_while_the_broker_is_killed(tmp_path: Path) -> None:
    try:
        count_while_killed(tmp_path, KILLS, SEED)
    except ClientMissing as missing:
        pytest.skip(str(missing))
