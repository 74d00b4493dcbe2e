"""Tests of clusters that are too long for every run."""

import os

import pytest

LENGTHY = pytest.mark.skipif(
    os.environ.get("OTTLA_TEST_ALL_CLUSTERS") != "1",
    reason="takes long, and the machine for itself: played with OTTLA_TEST_ALL_CLUSTERS=1",
)
