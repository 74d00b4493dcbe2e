"""Descriptors: how many there may be, and who gets them."""

import resource
import subprocess
import sys

import pytest

from broker import limits
from broker.open_files import current_limit, raise_limit, share


class Limits:
    """The system's, as far as this process can tell."""

    def __init__(self, soft: int, hard: int, *, refused_from: int) -> None:
        self.values = soft, hard
        self._refused_from = refused_from

    def get(self, which: int) -> tuple[int, int]:
        assert which == resource.RLIMIT_NOFILE
        return self.values

    def set(self, which: int, values: tuple[int, int]) -> None:
        assert which == resource.RLIMIT_NOFILE
        if values[0] == resource.RLIM_INFINITY or values[0] >= self._refused_from:
            raise ValueError("current limit exceeds maximum limit")
        self.values = values


@pytest.mark.parametrize(
    ("soft", "hard", "refused_from", "raised"),
    [
        (1024, 524_288, 1 << 30, 524_288),
        (4096, 4096, 1 << 30, 4096),
        (256, resource.RLIM_INFINITY, 10_241, 10_240),
        (20_000, resource.RLIM_INFINITY, 10_241, 20_000),
        (256, 1024, 0, 256),
    ],
)
def test_the_limit_is_raised_as_far_as_the_system_lets_it(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, refused_from: int, raised: int
) -> None:
    system = Limits(soft, hard, refused_from=refused_from)
    monkeypatch.setattr(resource, "getrlimit", system.get)
    monkeypatch.setattr(resource, "setrlimit", system.set)
    raise_limit()
    assert current_limit() == raised
    assert system.values == (raised, hard)


def test_of_the_real_system() -> None:
    script = (
        "import resource; from broker.open_files import *;"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1];"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard));"
        "before = current_limit(); raise_limit(); print(before, current_limit() > 200)"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout == "200 True\n"


@pytest.mark.parametrize("limit", [limits.OPEN_FILES_MIN, 256, 1000, 1024, 2048, 20_000, 1 << 30])
def test_everybody_gets_a_share(limit: int) -> None:
    shared = share(limit)
    reserve = limit - shared.of_logs_max - shared.connections_max
    assert 32 <= shared.of_logs_max <= limits.LOG_FILES_OPEN_MAX
    assert 64 <= reserve <= limits.OPEN_FILES_RESERVE
    assert shared.connections_max >= limit // 4


def test_of_a_shell_s_ordinary_limit_clients_get_most() -> None:
    assert share(1024)[1:] == (256, 640)
