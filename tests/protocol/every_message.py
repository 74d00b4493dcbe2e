"""Every message class that is declared: what the sweeps walk."""

import importlib
import pkgutil

import protocol.headers
import protocol.messages
import protocol.stored
from protocol.schema import Message


def declared_in(package_name: str, path: list[str]) -> list[type[Message]]:
    """The messages that still have a version, in the order of their modules."""
    found: dict[type[Message], None] = {}
    for info in pkgutil.iter_modules(path, f"{package_name}."):
        for value in vars(importlib.import_module(info.name)).values():
            if isinstance(value, type) and issubclass(value, Message) and value.__module__ == info.name:
                found[value] = None
    return [message for message in found if message.versions]


HEADERS: list[type[Message]] = [
    value
    for value in vars(protocol.headers).values()
    if isinstance(value, type) and issubclass(value, Message) and value is not Message
]
API_MESSAGES = declared_in("protocol.messages", list(protocol.messages.__path__))
STORED_MESSAGES = declared_in("protocol.stored", list(protocol.stored.__path__))
EVERY_MESSAGE = [*HEADERS, *API_MESSAGES, *STORED_MESSAGES]
