"""Client telemetry in a running broker: who asks, and what the metadata says is wanted."""

from functools import cached_property
from typing import TYPE_CHECKING

from broker.metadata.image import MetadataImage, ResourceType

if TYPE_CHECKING:
    from broker.network.call import Call
    from broker.services import Services
    from broker.telemetry.clients import Client, ClientTelemetry

UNKNOWN = "unknown"
"""The software of a client that has not said what it is."""


class TelemetryService:
    """Nothing of it is loaded before a client asks."""

    def __init__(self, services: "Services") -> None:
        self._services = services
        self._image: MetadataImage | None = None

    @cached_property
    def _clients(self) -> "ClientTelemetry":
        from broker.telemetry.clients import ClientTelemetry

        return ClientTelemetry(self._services.config.get("telemetry.max.bytes"))

    @property
    def clients(self) -> "ClientTelemetry":
        """The machine, which knows what the published image says."""
        image = self._services.image
        if image is not self._image:
            self._image = image
            self._clients.subscribe(
                {
                    name: settings
                    for (kind, name), settings in image.configs.items()
                    if kind == ResourceType.CLIENT_METRICS and settings
                }
            )
        return self._clients

    def hear_of(self, client_id: bytes, call: "Call") -> "Client":
        """The client that asks; it is forgotten with the connection on which it has come first."""
        connection = call.connection
        client, is_new = self.clients.hear_of(
            client_id,
            {
                "client_id": call.client_id or "",
                "client_software_name": connection.client_software_name or UNKNOWN,
                "client_software_version": connection.client_software_version or UNKNOWN,
                "client_source_address": call.peer.host,
                "client_source_port": str(call.peer.port),
            },
            call.received_ms,
        )
        if is_new:
            connection.when_closed(TelemetryService, lambda: self._clients.forget(client_id))
        return client
