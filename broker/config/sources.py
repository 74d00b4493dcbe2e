"""Where a broker's settings come from: properties files, environment variables, the command line."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from broker.config.checks import base_name
from broker.config.definitions import ConfigError, Scope, find
from broker.logs import LOGGERS, ROOT, Level

ENVIRONMENT_PREFIX = "KAFKA_"

OF_THE_IMAGE = frozenset(
    (
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JMX_OPTS",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_OPTS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "KAFKA_VERSION",
    )
)
"""Variables by which Kafka's image starts its Java process; they name no setting."""

ROOT_LEVEL = "KAFKA_LOG4J_ROOT_LOGLEVEL"
LOGGER_LEVELS = "KAFKA_LOG4J_LOGGERS"

_BLANKS = " \t\f"
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(data: bytes, *, encoding: str = "latin-1") -> dict[str, str]:
    """The pairs of a Java properties file.  A key that comes again replaces what was said before.

    Java's rules: bytes are Latin-1, if nobody says otherwise, and everything else is ``\\uXXXX``; ``=``,
    ``:`` or blanks end a key; a backslash at the end of a line continues it; ``#`` and ``!`` begin comments.
    ``ConfigError`` for a ``\\u`` that four hexadecimal digits do not follow, the one thing that Java refuses.
    """
    pairs: dict[str, str] = {}
    for line in _logical_lines(data.decode(encoding)):
        key, value = _split(line)
        pairs[_unescape(key)] = _unescape(value)
    return pairs


def _logical_lines(text: str) -> Iterable[str]:
    """Lines without comments and leading blanks, continued ones joined."""
    pending: str | None = None
    for natural in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = natural.lstrip(_BLANKS)
        if pending is None and (not line or line[0] in "#!"):
            continue
        joined = line if pending is None else pending + line
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending = joined[:-1]
        else:
            pending = None
            if joined:
                yield joined
    if pending is not None:
        yield pending


def _split(line: str) -> tuple[str, str]:
    """Where the key ends, and where, behind blanks and one separator, the value begins."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    end = min(end, len(line))
    value = line[end:].lstrip(_BLANKS)
    if value[:1] in ("=", ":"):
        value = value[1:].lstrip(_BLANKS)
    return line[:end], value


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    characters: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\" or position == len(text):
            characters.append(character)
            continue
        escaped = text[position]
        position += 1
        if escaped == "u":
            digits = text[position : position + 4]
            if len(digits) != 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise ConfigError(f"\\u{digits} in a properties file: \\u needs four hexadecimal digits")
            escaped = chr(int(digits, 16))
            position += 4
        else:
            escaped = _ESCAPED.get(escaped, escaped)
        characters.append(escaped)
    # Two escapes may be the halves of one character outside the basic plane.
    return "".join(characters).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_override(text: str) -> tuple[str, str]:
    """``name=value``, as ``--override`` takes it."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"--override {text}: expected name=value")
    return name.strip(), value


def setting_of_variable(variable: str) -> str:
    """The name that Kafka's image makes of ``KAFKA_…``: ``_`` dot, ``__`` underscore, ``___`` dash."""
    name = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", ".")
    return name.replace("...", "-").replace("..", "_")


def read_environment(environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The settings in ``KAFKA_…`` variables, and the variables that name none.

    Kubernetes sets some for every service it knows: ``KAFKA_PORT=tcp://…`` is no setting.
    """
    settings: dict[str, str] = {}
    ignored: list[str] = []
    for variable, value in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in (ROOT_LEVEL, LOGGER_LEVELS):
            continue
        name = setting_of_variable(variable)
        known = find(Scope.BROKER, base_name(name))
        if name.startswith("config.providers."):
            settings[name] = value
        elif variable in OF_THE_IMAGE or known is None or known.is_dynamic_only:
            ignored.append(variable)
        else:
            settings[name] = value
    return settings, sorted(ignored)


def read_levels(environment: Mapping[str, str]) -> tuple[dict[str, Level], list[str]]:
    """The levels of loggers in the two variables of Kafka's image, and what of them means nothing here."""
    pairs = environment.get(LOGGER_LEVELS, "").split(",")
    if environment.get(ROOT_LEVEL):
        pairs.insert(0, f"{ROOT}={environment[ROOT_LEVEL]}")
    levels: dict[str, Level] = {}
    ignored: list[str] = []
    for pair in filter(None, map(str.strip, pairs)):
        logger, _, level = pair.partition("=")
        if logger in LOGGERS and level.upper() in Level.__members__:
            levels[logger] = Level[level.upper()]
        else:
            ignored.append(pair)
    return levels, ignored


class Gathered(NamedTuple):
    """Settings from everywhere, the later source going before the earlier.

    ``cluster_id`` is what directories that are not formatted yet shall be formatted with.
    """

    settings: dict[str, str]
    cluster_id: str | None
    remarks: Sequence[str]
    levels: Mapping[str, Level]


def gather(properties_file: str | None, environment: Mapping[str, str], overrides: Iterable[str]) -> Gathered:
    """The file, then ``KAFKA_…`` variables, then ``--override``.

    ``ConfigError`` for a file that cannot be read, and for an override of the wrong form.
    """
    settings: dict[str, str] = {}
    if properties_file is not None:
        try:
            with open(properties_file, "rb") as file:
                settings.update(read_properties(file.read()))
        except FileNotFoundError as error:
            raise ConfigError(
                f"cannot read {properties_file}: {error.strerror}; `ottla --help` tells what may stand there"
            ) from error
        except OSError as error:
            raise ConfigError(f"cannot read {properties_file}: {error.strerror or error}") from error
    from_environment, ignored = read_environment(environment)
    settings.update(from_environment)
    settings.update(map(read_override, overrides))
    remarks = (
        [f"environment variables that name no setting, ignored: {', '.join(ignored)}"] if ignored else []
    )
    levels, no_levels = read_levels(environment)
    if no_levels:
        remarks.append(f"no logger or no level of this broker, ignored: {', '.join(no_levels)}")
    return Gathered(settings, environment.get("CLUSTER_ID") or None, remarks, levels)
