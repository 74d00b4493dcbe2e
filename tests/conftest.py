"""What every test may ask for: one seed, so that a random failure can be repeated."""

import gc
import os
import random
from collections.abc import Generator

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

SEED_VARIABLE = "OTTLA_TEST_SEED"

REPEATS_ITSELF = bool(os.environ.get("CI"))
"""Where a red run must be the fault of a change, each run tries the same; elsewhere, something new."""

SEED_THAT_REPEATS = 4_04_2026

hypothesis.settings.register_profile(
    "ottla", deadline=None, database=None, print_blob=True, derandomize=REPEATS_ITSELF
)
hypothesis.settings.load_profile("ottla")

# Hypothesis would read all modules for numbers and texts to try, in each process anew: that takes longer than
# most of what is then tried, which would depend on the modules that a process happens to have imported.
OF_NO_MODULE = Constants()
providers._get_local_constants = lambda: OF_NO_MODULE


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """An int for this test's random values; set OTTLA_TEST_SEED to repeat a failure."""
    given = os.environ.get(SEED_VARIABLE)
    if given:
        chosen = int(given)
    else:
        chosen = SEED_THAT_REPEATS if REPEATS_ITSELF else random.SystemRandom().getrandbits(32)
    request.node.user_properties.append(("seed", chosen))
    return chosen


@pytest.fixture
def chance(seed: int) -> random.Random:
    """A source of random values that starts from ``seed``."""
    return random.Random(seed)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: the garbage collector need not look at it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long come first: when two workers share the files, none is left alone at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    for name, value in item.user_properties:
        if name == "seed" and report.failed:
            report.sections.append(("seed", f"repeat with {SEED_VARIABLE}={value}"))
    return report
