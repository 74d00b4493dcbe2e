"""The broker that tools are run against."""

import os

import pytest


@pytest.fixture(scope="session")
def address(request: pytest.FixtureRequest) -> str:
    given = os.environ.get("OTTLA_TEST_BOOTSTRAP")
    if given:
        return given
    address = request.getfixturevalue("ottla").address
    assert isinstance(address, str)
    return address
