"""What the operating system says of a process and its children (Linux)."""

import os
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Memory of a process and its children that is in RAM."""
    return sum(_status_bytes(each, "VmRSS:") for each in [pid, *descendants(pid)])


def peak_resident_bytes(pid: int) -> int:
    """The most memory that a process has had in RAM so far; its children are left out."""
    return _status_bytes(pid, "VmHWM:")


def cpu_seconds(pid: int) -> float:
    """Processor time that a process and its children have used so far, in user and kernel mode."""
    return sum(_cpu_seconds(each) for each in [pid, *descendants(pid)])


def descendants(pid: int) -> list[int]:
    """The children of a process, their children, and so on."""
    found = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in thread.read_text().split()]
        except OSError:
            continue  # the thread ended meanwhile
        for child in children:
            found += [child, *descendants(child)]
    return found


def _status_bytes(pid: int, name: str) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    return 0


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND
