"""Where a share group begins with a partition of which it has no state."""

import re
from typing import Final

from broker.partitions.leader import Leader
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError

_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:[.,]\d*)?)S)?)?",
    re.IGNORECASE,
)
_UNIT_MS: Final = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}


def reset_offset(strategy: str, leader: Leader, now_ms: int) -> int:
    """The offset that ``share.auto.offset.reset`` names.

    Raises OFFSET_NOT_AVAILABLE if there is no record since the time that it names.
    """
    log = leader.log
    if strategy == "latest":
        return log.high_watermark
    if strategy == "earliest":
        return log.log_start
    since_ms = now_ms - duration_ms(strategy.partition(":")[2])
    found = log.find_by_timestamp(since_ms, upper=log.high_watermark)
    if found is None:
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
    return found.offset


def duration_ms(text: str) -> int:
    """An ISO 8601 duration such as ``P1DT2H3M4.5S``, in whole milliseconds."""
    parsed = _DURATION.fullmatch(text)
    assert parsed is not None, "the setting was checked"
    return int(
        sum(
            float(parsed[unit].replace(",", ".")) * scale
            for unit, scale in _UNIT_MS.items()
            if parsed[unit] is not None
        )
    )
