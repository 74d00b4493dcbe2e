"""Numbers as Java writes them.  What it reads stands in the recorded values."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.config.value_types import read_integer, read_value, show_double, show_value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.5, "1.234567895E8"),
        (-2.5e-7, "-2.5E-7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert show_double(value) == text


@given(st.floats(allow_nan=False))
def test_a_written_double_is_read_as_the_same(value: float) -> None:
    assert read_value("x", "DOUBLE", show_double(value)) == value


@given(st.integers(-(1 << 31), (1 << 31) - 1))
def test_a_written_integer_is_read_as_the_same(value: int) -> None:
    assert read_integer(str(value)) == value


@pytest.mark.parametrize("text", ["", "+", "1_0", " 1", "1.0", "2147483648", "-2147483649", "0x1"])
def test_what_is_no_integer_for_java_is_none(text: str) -> None:
    assert read_integer(text) is None


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (("a", "b"), "a,b"), ((), ""), (None, None), ("x", "x"), (7, "7")]
)
def test_values_are_shown_as_texts(value: object, text: str | None) -> None:
    assert show_value(value) == text  # type: ignore[arg-type]
