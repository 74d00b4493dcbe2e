import pytest

from broker.clock import BrokerClock


@pytest.fixture
def clock() -> BrokerClock:
    """Decides over every deadline of the test, since pytest-trio runs it by this clock."""
    return BrokerClock()
