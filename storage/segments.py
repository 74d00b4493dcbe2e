"""The segments of one log: found on disk, or begun."""

import os
from collections.abc import Collection

from storage import paths
from storage.config import LogConfig
from storage.errors import CorruptFile, CorruptLog
from storage.log_services import LogServices
from storage.segment import Segment
from storage.transaction_index import check_transaction_index


def list_segments(
    services: LogServices, directory: str, names: list[str], config: LogConfig, now_ms: int
) -> list[Segment]:
    """The segments among ``names``, oldest first; index files without a segment are removed."""
    file_system = services.file_system
    bases = {base for name in names if (base := paths.parse_offset_name(name, paths.LOG)) is not None}
    for name in names:
        for suffix in paths.SEGMENT_FILES[1:]:
            base = paths.parse_offset_name(name, suffix)
            if base is not None and base not in bases:
                path = os.path.join(directory, name)
                services.report(f"{path} has no segment; it is removed")
                file_system.remove(path)
    segments = []
    for base in sorted(bases):
        segment = Segment(
            directory, base, config, services.descriptors, now_ms=now_ms, report=services.report
        )
        segment.size_bytes = file_system.file_size(segment.file.path)
        segments.append(segment)
    return segments


def create_segment(
    services: LogServices, directory: str, base_offset: int, config: LogConfig, now_ms: int
) -> Segment:
    """A new, empty segment; whatever lies under its names is removed first."""
    jitter_ms = 0
    if config.segment_jitter_ms:
        jitter_ms = services.random_below(max(min(config.segment_jitter_ms, config.segment_ms), 1))
    prefix = os.path.join(directory, paths.offset_name(base_offset))
    for suffix in paths.SEGMENT_FILES:
        if services.file_system.exists(prefix + suffix):
            services.report(f"{prefix + suffix} is in the way of a new segment and is removed")
            services.file_system.remove(prefix + suffix)
    segment = Segment(
        directory,
        base_offset,
        config,
        services.descriptors,
        now_ms=now_ms,
        jitter_ms=jitter_ms,
        report=services.report,
    )
    segment.create()
    return segment


def find_index_damage(services: LogServices, segment: Segment, names: Collection[str]) -> CorruptFile | None:
    """What is wrong with the indexes of a segment that should be in order; None if nothing is.

    Like Kafka this reads none but the transaction index, which few segments have: the others are only
    hints where to look, but what that one leaves out would be served as committed.
    """
    if not segment.has_index_in(names):
        return CorruptLog(segment.file.path, 0, "its index is missing")
    path = segment.transaction_index.path
    if os.path.basename(path) in names:
        try:
            check_transaction_index(services.file_system, path, segment.base_offset)
        except CorruptFile as damage:
            return damage
    return None


def first_untrusted(segments: list[Segment], recovery_point: int) -> int:
    """The number of the first segment whose files may not be on the device as they should.

    That is the one with the last record below the recovery point, even if it ends there: its records
    are safe, but its indexes need not be before the next flush after it was sealed.
    """
    first = 0
    while first + 1 < len(segments) and segments[first + 1].base_offset < recovery_point:
        first += 1
    return first
