"""After a power cut the check names what a start will mend, and nothing that was flushed is damaged."""

from random import Random

import pytest

from storage.config import LogConfig
from tests.storage.verification.directories import (
    CONFIG,
    TIME,
    TOPICS,
    Directory,
    write_compacted,
    write_events,
    write_metadata,
    write_old,
)

CUTS = 25


def cut_power(chance: Random) -> Directory:
    """A directory whose logs were written, and flushed now and then, when the power went."""
    directory = Directory()
    directory.memory.sync_everything()
    opened = directory.open()
    write_metadata(directory.file_system, opened)
    opened.open_metadata_log(LogConfig(), now_ms=TIME).flush()
    writers = {"events": write_events, "old": write_old, "compacted": write_compacted}
    for name in chance.sample(sorted(writers), 3):
        log = opened.create_log(name, 0, TOPICS[name], CONFIG, now_ms=TIME)
        writers[name](log)
        if chance.random() < 0.5:
            log.flush()
        if chance.random() < 0.5:
            opened.begin_checkpoint()()
            opened.begin_high_watermark_checkpoint()()
    directory.memory.lose_power(chance, sector_bytes=512)
    return directory


def test_what_a_power_cut_leaves(chance: Random) -> None:
    for _ in range(CUTS):
        damages = [
            finding
            for finding in cut_power(chance).damages()
            # Whole files may be gone between others that were never flushed either.
            if "are missing" not in finding.text and "sent sequence" not in finding.text
        ]
        assert damages == []


@pytest.mark.parametrize("sector_bytes", [0, 512])
def test_what_was_flushed_is_not_even_noted(sector_bytes: int, chance: Random) -> None:
    directory = Directory()
    directory.fill()
    directory.memory.sync_everything()
    directory.memory.lose_power(chance, sector_bytes=sector_bytes)
    assert directory.damages() == []
