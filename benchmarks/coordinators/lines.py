"""Many clients at once that cost little: a connection each, and all their requests on the way together."""

import socket
import struct
import time
from collections.abc import Sequence
from typing import Any, TypeVar

from compat.probe import receive_frame, split_address
from protocol.api_keys import ApiKey
from protocol.headers import RequestHeader, ResponseHeader
from protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.schema import Message

M = TypeVar("M", bound=Message)

TIMEOUT_SECONDS = 60
PAUSE_SECONDS = 0.01
CLIENT_ID = "bench"
GROUP_RESOURCE = 32

_SIZE = struct.Struct(">i")


class Line:
    """One connection of one client.  Its requests are answered in their order."""

    def __init__(self, address: str) -> None:
        self._socket = socket.create_connection(split_address(address), timeout=TIMEOUT_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        self._socket.close()

    def fileno(self) -> int:
        """For selectors."""
        return self._socket.fileno()

    def send(self, *frames: bytes) -> None:
        self._socket.sendall(b"".join(frames))

    def receive(self) -> bytes:
        """The next answer, as it came."""
        frame = receive_frame(self._socket)
        if not frame:
            raise ConnectionError("the broker closed the connection")
        return frame

    def ask(self, request: Message, response: type[M], version: int) -> M:
        self.send(framed(request, version))
        return read(self.receive(), response, version)


def framed(request: Message, version: int) -> bytes:
    """A whole request."""
    header = RequestHeader(
        request_api_key=request.api_key,
        request_api_version=version,
        correlation_id=0,
        client_id=CLIENT_ID,
    ).encode(2 if version in request.flexible else 1)
    body = request.encode(version)
    return b"".join((_SIZE.pack(len(header) + len(body)), header, body))


def read(frame: bytes, response: type[M], version: int) -> M:
    """The message that fills an answer."""
    flexible = version in response.flexible and response.api_key != ApiKey.API_VERSIONS
    _, position = ResponseHeader.decode_from(frame, 0, 1 if flexible else 0)
    return response.decode_from(frame, position, version)[0]


def ask_all(lines: Sequence[Line], requests: Sequence[Message], response: type[M], version: int) -> list[M]:
    """Let every client ask at once; returns when all are answered."""
    for line, request in zip(lines, requests, strict=True):
        line.send(framed(request, version))
    return [read(line.receive(), response, version) for line in lines]


def check(answer: Any, *allowed: int) -> None:
    """Raise RuntimeError if an answer tells of an error."""
    if answer.error_code and answer.error_code not in allowed:
        raise RuntimeError(f"{type(answer).__name__} has error {answer.error_code}")


def until_coordinated(address: str, group: str) -> None:
    """Wait until the group's coordinator answers; the first question about one makes its topic."""
    found = FindCoordinatorRequest(coordinator_keys=[group])
    described = DescribeGroupsRequest(groups=[group])
    deadline = time.monotonic() + TIMEOUT_SECONDS
    line = Line(address)
    try:
        while True:
            (coordinator,) = line.ask(found, FindCoordinatorResponse, 6).coordinators
            (answer,) = line.ask(described, DescribeGroupsResponse, 5).groups
            if not coordinator.error_code and not answer.error_code:
                return
            if time.monotonic() > deadline:
                raise RuntimeError(f"no coordinator for {group}: error {answer.error_code}")
            time.sleep(PAUSE_SECONDS)
    finally:
        line.close()


def set_up_group(line: Line, group: str, setting: str, value: str) -> None:
    """Give a group a setting of its own."""
    change = AlterableConfig(name=setting, value=value)
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    for each in line.ask(request, IncrementalAlterConfigsResponse, 1).responses:
        check(each)
