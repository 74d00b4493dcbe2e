"""A broker process that the tests here share."""

from collections.abc import Iterator

import pytest

from compat.oracle.brokers import compared_ottla
from compat.oracle.recording import Recording, read


@pytest.fixture(scope="session")
def compared_address() -> Iterator[str]:
    """An Ottla with the settings with which the recording was made."""
    with compared_ottla() as address:
        yield address


@pytest.fixture(scope="session")
def recording() -> Recording:
    """What Kafka answered."""
    return read()
