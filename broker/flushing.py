"""Carrying out a log's fsyncs in a thread."""

from collections.abc import Awaitable, Callable

import trio

from broker import limits
from broker.logs import Log
from storage.errors import DiskFailure
from storage.partition_log import FlushJob


async def run_flush(
    job: FlushJob, run_blocking: Callable[[Callable[[], None]], Awaitable[object]], log: Log
) -> None:
    """Run ``job`` to its end.  While a file cannot be opened for want of a descriptor, try again later.

    Raises DiskFailure, which has to end the broker: after that nobody knows what is on disk.
    """
    while True:
        try:
            await run_blocking(job.run)
        except DiskFailure as failure:
            if not failure.lacks_descriptor:
                raise
            log.warn_seldom(f"an fsync is late: {failure}")
            await trio.sleep(limits.FLUSH_RETRY_SECONDS)
        else:
            return
