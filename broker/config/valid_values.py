"""Which values a setting takes, built from the short notation of ``tables``.

A check returns the value it was given (a list without repetitions) or raises ``ConfigError`` with Kafka's
text.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from broker.config.value_types import ConfigError, Value, invalid, show_double

__all__ = ["Check", "ConfigError", "checker"]

Check: TypeAlias = Callable[[str, Value], Value]


def checker(notation: str) -> Check:
    """The check that one entry of the "valid values" column stands for."""
    named = _NAMED.get(notation)
    if named is not None:
        return named
    if notation.startswith("{"):
        choices, _, case = notation[1:].partition("}")
        return _one_of(choices.split(","), any_case=case == "i")
    if notation.startswith("["):
        members, _, marks = notation[1:].partition("]")
        return _list(members.split(",") if members else [], empty="+" not in marks, null="?" in marks)
    low, _, high = notation.partition("..")
    return _range(low, high)


def _shown(value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    return show_double(value) if isinstance(value, float) else str(value)


def _range(low: str, high: str) -> Check:
    least = float(low) if "." in low else int(low)
    most = None if not high else float(high) if "." in high else int(high)

    def check(name: str, value: Value) -> Value:
        if not isinstance(value, int | float):
            raise invalid(name, _shown(value), "Value must be non-null")
        if value < least:  # NaN passes, as it does in Kafka
            raise invalid(name, _shown(value), f"Value must be at least {low}")
        if most is not None and value > most:
            raise invalid(name, _shown(value), f"Value must be no more than {high}")
        return value

    return check


def _one_of(choices: Sequence[str], *, any_case: bool) -> Check:
    allowed = [choice.upper() for choice in choices] if any_case else choices
    said = "String must be one of (case insensitive): " if any_case else "String must be one of: "

    def check(name: str, value: Value) -> Value:
        given = value.upper() if any_case and isinstance(value, str) else value
        if given not in allowed:
            raise invalid(name, _shown(value), said + ", ".join(choices))
        return value

    return check


def _list(members: Sequence[str], *, empty: bool, null: bool) -> Check:
    one_member = _one_of(members, any_case=False) if members else None

    def check(name: str, value: Value) -> Value:
        if value is None and null:
            return None
        if not isinstance(value, tuple):
            raise ConfigError(f"Configuration '{name}' values must not be null.")
        if not value and not empty:
            valid = f"[{', '.join(members)}]" if members else "any non-empty value"
            raise ConfigError(f"Configuration '{name}' must not be empty. Valid values include: {valid}")
        unique = tuple(dict.fromkeys(value))  # KIP-1161: said twice counts once
        for item in unique:
            if not item:
                raise ConfigError(f"Configuration '{name}' values must not be empty.")
            if one_member is not None:
                one_member(name, item)
        return unique

    return check


def _any(name: str, value: Value) -> Value:
    return value


def _gzip_level(name: str, value: Value) -> Value:
    if not isinstance(value, int):
        raise invalid(name, _shown(value), "Value must be non-null")
    if value != -1 and not 1 <= value <= 9:
        raise invalid(name, _shown(value), "Value must be between 1 and 9 or equal to -1")
    return value


def _non_null(name: str, value: Value) -> Value:
    if value is None:
        raise invalid(name, "null", "entry must be non null")
    return value


def _non_empty(name: str, value: Value) -> Value:
    if value == "":
        raise invalid(name, "", "String must be non-empty")
    return value


def _throttled_replicas(name: str, value: Value) -> Value:
    """``*``, or ``partition:broker`` pairs."""
    replicas = value if isinstance(value, tuple) else ("null",)
    if replicas != ("*",) and not all(re.fullmatch(r"([0-9]+:[0-9]+)?", item) for item in replicas):
        pair = "[partitionId]:[brokerId]"
        reason = (
            f"{name} must be the literal '*' or a list of replicas in the following format: {pair},{pair},..."
        )
        raise invalid(name, _shown(value), reason)
    return value


_DURATION = r"(?ai)P(?=.)(?:\d+D)?(?:T(?=.)(?:\d+H)?(?:\d+M)?(?:\d+(?:[.,]\d{0,9})?S)?)?"


def _offset_reset(name: str, value: Value) -> Value:
    """Where a share group begins: an end of the log, or an ISO 8601 duration ago."""
    if isinstance(value, str):
        word, _, duration = value.partition(":")
        if value in ("earliest", "latest") or (word == "by_duration" and re.fullmatch(_DURATION, duration)):
            return value
    reason = (
        f"Invalid value `{_shown(value)}` for configuration {name}. The value must be either 'earliest', "
        "'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    )
    raise invalid(name, _shown(value), reason)


_HOST_PORT = r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)"


def _voters(name: str, value: Value) -> Value:
    if not isinstance(value, tuple):
        raise ConfigError(f"Invalid value {_shown(value)} for configuration {name}")
    form = "Each entry should be in the form `{id}@{host}:{port}`."
    for entry in value:
        parts = entry.split("@")
        if len(parts) != 2:
            raise ConfigError(f"Invalid configuration value for {name}. {form}")
        voter, address = parts
        if not re.fullmatch(r"[+-]?\d+", voter):
            raise ConfigError(f"Failed to parse voter ID as an integer from {voter}")
        if not re.fullmatch(_HOST_PORT, address):
            raise ConfigError(
                f"Failed to parse host name from entry {entry} for the configuration {name}. {form}"
            )
        _check_port(name, address)
    return value


def _bootstrap_servers(name: str, value: Value) -> Value:
    if not isinstance(value, tuple):
        raise ConfigError(f"Invalid value {_shown(value)} for configuration {name}")
    for entry in value:
        if not re.fullmatch(_HOST_PORT, entry):
            raise ConfigError(
                f"Failed to parse host name from {entry} for the configuration {name}. "
                'Each entry should be in the form "{host}:{port}"'
            )
        _check_port(name, entry)
    return value


def _check_port(name: str, address: str) -> None:
    port = int(address.rpartition(":")[2])
    if port > 65535:
        raise ConfigError(f"Invalid value {address} for configuration {name}: port out of range:{port}")


_NAMED: Mapping[str, Check] = {
    "any": _any,
    "1..9|-1": _gzip_level,
    "non-null": _non_null,
    "non-empty": _non_empty,
    "throttled-replicas": _throttled_replicas,
    "offset-reset": _offset_reset,
    "voters": _voters,
    "bootstrap-servers": _bootstrap_servers,
}
