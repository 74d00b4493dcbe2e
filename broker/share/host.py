"""The place of the service that hands out records to share groups: it is loaded with the first request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from broker.services import Services
    from broker.share.service import ShareService


class ShareHost:
    """Imported before the port is open, and therefore light."""

    def __init__(self, services: Services, nursery: trio.Nursery) -> None:
        self._services = services
        self._nursery = nursery

    @cached_property
    def service(self) -> ShareService:
        from broker.share.service import ShareService

        service = ShareService(self._services, self._nursery)
        self._services.metadata.on_publish(service.published)
        self._nursery.start_soon(service.keep_time)
        self._nursery.start_soon(service.serve_woken)
        return service

    def end(self) -> None:
        """The broker stops."""
        if "service" in self.__dict__:
            self.service.end()


@asynccontextmanager
async def open_share_host(services: Services) -> AsyncIterator[ShareHost]:
    """A host that serves inside the block.

    Nothing is lost by its end: what members hold and have not acknowledged is available afterwards.
    """
    async with trio.open_nursery() as nursery:
        host = ShareHost(services, nursery)
        try:
            yield host
        finally:
            host.end()
            nursery.cancel_scope.cancel()
