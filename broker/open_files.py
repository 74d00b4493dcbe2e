"""How many files and sockets the process may have open at once, and how logs and clients share them."""

import resource
from typing import NamedTuple

from broker import limits

_UNLIMITED = 1 << 30
"""Stands for a limit that the system does not set."""

_OPEN_MAX = 10_240
"""What macOS accepts where it says that there is no limit."""


class OpenFiles(NamedTuple):
    """Who gets the descriptors.  What is in neither share is for all that is open only for a moment."""

    limit: int
    """Of the whole process."""
    of_logs_max: int
    """Files of logs that are kept open; others are opened again when they are used."""
    connections_max: int
    """Clients beyond wait in the backlog."""


def raise_limit() -> None:
    """Take as many descriptors as the system allows this process; shells mostly begin with fewer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, _OPEN_MAX):
        if _as_number(soft) < _as_number(wanted) <= _as_number(hard):
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
                return
            except (OSError, ValueError):
                pass  # the system keeps a lower limit than it tells


def current_limit() -> int:
    """How many descriptors this process may have."""
    return _as_number(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def share(limit: int) -> OpenFiles:
    """Divide ``limit`` descriptors, which are at least ``OPEN_FILES_MIN``."""
    of_logs = min(limits.LOG_FILES_OPEN_MAX, limit // 4)
    reserve = max(limits.OPEN_FILES_MIN // 2, min(limits.OPEN_FILES_RESERVE, limit // 8))
    return OpenFiles(limit, of_logs, limit - of_logs - reserve)


def _as_number(limit: int) -> int:
    return _UNLIMITED if limit == resource.RLIM_INFINITY else min(limit, _UNLIMITED)
