"""When and where, in words."""

import os
import platform
import time
from pathlib import Path

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


def today() -> str:
    now = time.localtime()
    return f"{now.tm_mday} {MONTHS[now.tm_mon - 1]} {now.tm_year}"


def machine() -> str:
    """Cores, memory and system; not a name."""
    cores = len(os.sched_getaffinity(0))
    gibibytes = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3)
    system = f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}"
    python = f"Python {platform.python_version()}"
    return f"{cores} cores{_processor()}, {gibibytes} GiB of memory, {system}, {python}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f" of an {names[0].replace('(R)', '')}" if names else ""
