"""Values that stand elsewhere: ``${env:NAME}``, ``${file:/path:key}``, ``${dir:/path:file}`` (KIP-297).

Loaded where ``config.providers`` is among the settings that a broker is started with.  Set for a running one
it would let any client read what the broker can read; so it has no effect there.
"""

import os
import re
from collections.abc import Callable, Mapping

from broker.config.sources import read_properties
from broker.config.value_types import ConfigError

PROVIDERS = "config.providers"

Lookup = Callable[[str, str], str | None]
"""From path and key to what is found there."""

_VARIABLE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")


def resolve(settings: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """``settings`` with every variable of a provider that they name filled in.

    A variable stays as it is where its provider is not named, or does not know it.  ``ConfigError`` for a
    provider that there is not, and for a file that cannot be read.
    """
    lookups = {
        name: _lookup(settings, name, settings[f"{PROVIDERS}.{name}.class"], environment)
        for name in settings[PROVIDERS].split(",")
        if f"{PROVIDERS}.{name}.class" in settings
    }

    def filled_in(variable: re.Match[str]) -> str:
        lookup = lookups.get(variable[1])
        found = None if lookup is None else lookup(variable[2] or "", variable[3])
        return variable[0] if found is None else found

    return {name: _VARIABLE.sub(filled_in, text) for name, text in settings.items()}


def _lookup(
    settings: Mapping[str, str], name: str, java_class: str, environment: Mapping[str, str]
) -> Lookup:
    package, _, kind = java_class.rpartition(".")
    parameter = f"{PROVIDERS}.{name}.param."
    if package == "org.apache.kafka.common.config.provider":
        if kind == "EnvVarConfigProvider":
            return _variables(environment, settings, f"{parameter}allowlist.pattern")
        if kind in ("FileConfigProvider", "DirectoryConfigProvider"):
            allowed = _allowed(settings.get(f"{parameter}allowed.paths", ""))
            return _files(allowed) if kind == "FileConfigProvider" else _directories(allowed)
    raise ConfigError(
        f"Invalid value {java_class} for configuration {PROVIDERS}.{name}.class: "
        "Could not load config provider class or one of its dependencies"
    )


def _variables(environment: Mapping[str, str], settings: Mapping[str, str], allowlist: str) -> Lookup:
    try:
        pattern = re.compile(settings.get(allowlist, ".*"))
    except re.error as error:
        raise ConfigError(
            f"Invalid value {settings[allowlist]} for configuration {allowlist}: {error}"
        ) from error

    def look_up(path: str, key: str) -> str | None:
        if path:
            raise ConfigError(f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'")
        return environment.get(key) if pattern.fullmatch(key) else None

    return look_up


def _files(allowed: Callable[[str], bool]) -> Lookup:
    known: dict[str, Mapping[str, str]] = {}

    def look_up(path: str, key: str) -> str | None:
        if not path or not allowed(path):
            return None
        if path not in known:
            try:
                with open(path, "rb") as file:
                    known[path] = read_properties(file.read(), encoding="utf-8")
            except ConfigError:
                raise
            except (OSError, ValueError) as error:  # ValueError: no text in UTF-8, or a null in the path
                raise ConfigError(f"Could not read properties from file {path}") from error
        return known[path].get(key)

    return look_up


def _directories(allowed: Callable[[str], bool]) -> Lookup:
    def look_up(path: str, key: str) -> str | None:
        whole = os.path.join(path, key)
        if not path or "/" in key or not allowed(path) or not os.path.isfile(whole):
            return None
        try:
            with open(whole, encoding="utf-8", newline="") as file:
                return file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"Could not read file {whole} for property {key}") from error

    return look_up


def _allowed(paths: str) -> Callable[[str], bool]:
    """Whether a path lies below one of ``paths``, wherever links lead; everything does if there are none."""
    roots = []
    for path in filter(None, paths.split(",")):
        if not os.path.isabs(path):
            raise ConfigError(f"Path {os.path.normpath(path)} is not absolute")
        if not os.path.exists(path):
            raise ConfigError(f"Path {os.path.normpath(path)} does not exist")
        roots.append(os.path.realpath(path))

    def is_allowed(path: str) -> bool:
        if not roots:
            return True
        real = os.path.realpath(path)
        return any(os.path.commonpath((real, root)) == root for root in roots)

    return is_allowed
