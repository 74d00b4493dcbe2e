"""The event loop that aiokafka lives in, and the way into it from threads."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from aiokafka.errors import BrokerResponseError

from compat.scenarios.python.client import LONG_TIMEOUT_SECONDS, Refused

Result = TypeVar("Result")


_starting = threading.Lock()


@cache
def _started_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="aiokafka", daemon=True).start()
    return loop


def _loop() -> asyncio.AbstractEventLoop:
    """The one loop, started by whoever comes first."""
    with _starting:
        return _started_loop()


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run ``work`` in the loop and wait for it.  Errors that came from the broker leave as Refused."""
    with refusals():
        return asyncio.run_coroutine_threadsafe(work, _loop()).result(LONG_TIMEOUT_SECONDS)


@contextmanager
def refusals() -> Iterator[None]:
    try:
        yield
    except BrokerResponseError as error:
        raise Refused(error.errno, str(error)) from error
