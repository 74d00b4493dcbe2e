"""Brings all functions that carry out scenarios together: importing them is what registers them."""

from compat.scenarios.python import (
    administration,
    consumer_groups,
    consuming,
    groups,
    metadata,
    offsets,
    producing,
    shares,
    transactions,
)
from compat.scenarios.python.registry import PLAYS

__all__ = [
    "PLAYS",
    "administration",
    "consumer_groups",
    "consuming",
    "groups",
    "metadata",
    "offsets",
    "producing",
    "shares",
    "transactions",
]
