"""The types of settings: from text to value as Java reads it, and back as Java shows it."""

import re
from collections.abc import Mapping
from typing import TypeAlias

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None

TYPE_NUMBERS: Mapping[str, int] = {
    "BOOLEAN": 1,
    "STRING": 2,
    "INT": 3,
    "SHORT": 4,
    "LONG": 5,
    "DOUBLE": 6,
    "LIST": 7,
    "CLASS": 8,
    "PASSWORD": 9,
}
"""The numbers of the types in DescribeConfigs; 0 is "unknown"."""

UNKNOWN_TYPE_NUMBER = 0

_INTEGER_LIMITS: Mapping[str, int] = {"SHORT": 1 << 15, "INT": 1 << 31, "LONG": 1 << 63}

JAVA_BLANKS = "".join(map(chr, range(0x21)))
"""What ``String.trim`` takes off."""

_REGEX_BLANKS = " \t\n\x0b\f\r"
"""What ``\\s`` stands for in Java's regular expressions."""


class ConfigError(ValueError):
    """A value, or several together, that Kafka does not allow.

    ``message`` is one line that names the setting. ``wire_message`` is what a client is told: the same, after
    ``requirement failed:`` where Kafka says so.
    """

    def __init__(self, message: str, *, wire_message: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.wire_message = message if wire_message is None else wire_message


def invalid(name: str, shown: str, reason: str) -> ConfigError:
    """The refusal of one value, in Kafka's form."""
    return ConfigError(f"Invalid value {shown} for configuration {name}: {reason}")


def read_value(name: str, type_name: str, text: str) -> Value:
    """What ``text`` says for a setting of this type.  Only the type is looked at, not the allowed values."""
    trimmed = text.strip(JAVA_BLANKS)
    if type_name in ("STRING", "PASSWORD"):
        return trimmed
    if type_name == "BOOLEAN":
        folded = trimmed.lower()
        if folded not in ("true", "false"):
            raise invalid(name, text, "Expected value to be either true or false")
        return folded == "true"
    if type_name == "LIST":
        return tuple(item.strip(_REGEX_BLANKS) for item in trimmed.split(",")) if trimmed else ()
    if type_name == "CLASS":
        # Java asks for the class by the text as it stands. There is nothing to load here: what could be a
        # name in Kafka's own jars is believed, and nobody can have brought any other.
        if not re.fullmatch(r"org\.apache\.kafka(\.[^\W\d][\w$]*)+", text):
            raise invalid(name, text, f"Class {text} could not be found.")
        return text
    value = _read_double(trimmed) if type_name == "DOUBLE" else read_integer(trimmed, type_name)
    if value is None:
        raise invalid(name, text, f"Not a number of type {type_name}")
    return value


def read_integer(text: str, type_name: str = "INT") -> int | None:
    """The number that ``text`` is for Java; None if it is none, or too large for the type."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal():  # int() also takes underscores
        return None
    value = int(text)
    limit = _INTEGER_LIMITS[type_name]
    return value if -limit <= value < limit else None


# Patterns are compiled where they are used: most starts need none of them.
_DECIMAL = r"[+-]?(NaN|Infinity|((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)[fFdD]?)"
_HEXADECIMAL = r"[+-]?0[xX]([\da-fA-F]+\.?|[\da-fA-F]*\.[\da-fA-F]+)[pP][+-]?\d+[fFdD]?"


def _read_double(text: str) -> float | None:
    if re.fullmatch(_DECIMAL, text, re.ASCII):
        return float(text.rstrip("fFdD"))
    if re.fullmatch(_HEXADECIMAL, text, re.ASCII):
        return float.fromhex(text.rstrip("fFdD"))
    return None


def show_value(value: Value) -> str | None:
    """The text by which Java shows a value; ``None`` for "not set"."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return show_double(value) if isinstance(value, float) else str(value)


def show_double(value: float) -> str:
    """``Double.toString``: plain from 0.001 up to ten million, else with one digit before the point."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    power = int(exponent or 0) + len(whole) - 1 - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:] or '0'}E{power}"
