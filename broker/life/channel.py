"""How this node's broker asks the active controller, wherever that is: in this process or in another."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import trio

from broker.apis.table import APIS
from broker.errors import CloseConnection, DecodeError, ErrorCode, KafkaError, error_code_of
from broker.network.call import Address, Call, ConnectionState, Listener, MeteredCall
from broker.network.dispatch import ServedApi
from broker.network.waiting import Waiting
from protocol.api_keys import ApiKey
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.network.node_client import NodeClient
    from broker.services import Services
    from protocol.schema import Message

TIMEOUT_SECONDS: Final = 60.0
"""How long the controller may be away before a request is given up; Kafka's forwarding waits as long."""

RETRY_SECONDS: Final = 0.05
"""Before the controller is asked again the first time; each further time twice as long."""

RETRY_SECONDS_MAX: Final = 1.0

IDLE_MAX: Final = 4
"""Connections to the controller that are kept open while nothing is asked."""

FORWARDED_MAX: Final = 16
"""Requests of clients that are put to the controller at once; more have to wait for each other."""

PARTS: Final = ("topics", "responses", "results", "entries")
"""Of an answer that has no error of the whole: what each has its own."""

NOWHERE: Final = Address("", 0)

Done = Callable[[Any], None]
"""Takes the controller's answer, or the ``KafkaError`` that stands for none."""


class ControllerChannel:
    """Asks the active controller with Kafka's requests, and does not tell its callers where it is.

    A controller in this process is asked by a call of its API's handler.  Another one is reached by its
    address; one that cannot be reached, or is not active any more, is asked for again until time is over.
    So a request may be carried out twice, as with Kafka's brokers.

    An answer whose top-level error code is set is an answer like any other.
    """

    def __init__(self, services: "Services", start_soon: Callable[..., None]) -> None:
        """``start_soon`` begins a task that lasts no longer than the channel."""
        self._services = services
        self._start_soon = start_soon
        self._apis: dict[int, ServedApi] = {}
        self._connection = ConnectionState(0, Listener("CONTROLLER", is_controller=True), NOWHERE, NOWHERE)
        self._idle: list[NodeClient] = []
        self._forwarding = trio.CapacityLimiter(FORWARDED_MAX)
        self.versions: Mapping[int, tuple[int, int]] | None = None
        """The lowest and highest version of each API of another node's controller, once one was asked."""
        self._moved = trio.Event()
        self._under_way: dict[trio.CancelScope, Address] = {}
        """What another node is being asked, and where that is."""
        self._is_away = False

    @property
    def is_local(self) -> bool:
        """Whether this node's own controller is the active one, as far as is known here."""
        return self._services.quorum.is_leader

    @property
    def is_away(self) -> bool:
        """Whether another node's controller could not be asked, and has not answered since.

        The log says why: who copies the metadata finds the same.
        """
        return self._is_away and not self.is_local

    async def ask(
        self,
        request: "Message",
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        client: Call | None = None,
    ) -> Any:
        """The active controller's answer; raises REQUEST_TIMED_OUT when it has none in time.

        ``client`` is whose request this broker carries out with it, if it is not its own: the controller
        charges that client's quota.
        """
        give_up_at = trio.current_time() + timeout_seconds
        retry_seconds = RETRY_SECONDS
        while True:
            moved = self._moved
            answer = await self._ask_once(request, client, give_up_at)
            if isinstance(answer, KafkaError):
                raise answer
            if answer is not None and not says_not_controller(answer):
                return answer
            left = give_up_at - trio.current_time()
            if left <= 0:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "The controller could not be asked in time.")
            with trio.move_on_after(min(retry_seconds, left)):
                await moved.wait()
            retry_seconds = min(2 * retry_seconds, RETRY_SECONDS_MAX)

    def submit(
        self,
        request: "Message",
        done: Done,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        client: Call | None = None,
    ) -> None:
        """Ask, and call ``done`` with the answer, or with the KafkaError that ``ask`` would raise.

        A controller in this process is called at once; ``done`` may be called before this returns.
        """

        def tell(answer: "Message | KafkaError") -> None:
            if not isinstance(answer, KafkaError) and says_not_controller(answer):
                self._start_soon(self._ask_and_tell, request, done, timeout_seconds, client)
            else:
                done(answer)

        if self.is_local:
            answer = self._ask_here(request, client)
            if isinstance(answer, Waiting):
                _when_answered(answer, lambda: tell(self._result(request, answer)))
            else:
                tell(answer)
        else:
            self._start_soon(self._ask_and_tell, request, done, timeout_seconds, client)

    def controller_moved(self) -> None:
        """Another epoch has begun: what waits for a node that is not the controller any more asks anew.

        What waits for one that may still be goes on waiting: it would be done twice.
        """
        self._moved.set()
        self._moved = trio.Event()
        now = self._services.quorum.controller_address()
        for scope, asked in self._under_way.items():
            if self.is_local or now not in (None, asked):
                scope.cancel()

    def close(self) -> None:
        """Close all connections."""
        for client in self._idle:
            client.close()
        self._idle.clear()

    async def _ask_and_tell(
        self, request: "Message", done: Done, timeout_seconds: float, client: Call | None
    ) -> None:
        try:
            answer = await self.ask(request, timeout_seconds=timeout_seconds, client=client)
        except KafkaError as error:
            answer = error
        done(answer)

    async def _ask_once(
        self, request: "Message", client: Call | None, give_up_at: float
    ) -> "Message | KafkaError | None":
        """The answer, or None if the controller could not be asked."""
        if not self.is_local:
            return await self._ask_there(request, client, give_up_at)
        waiting = self._ask_here(request, client)
        if not isinstance(waiting, Waiting):
            await trio.lowlevel.checkpoint()
            return waiting
        answered = trio.Event()
        _when_answered(waiting, answered.set)
        with trio.move_on_at(give_up_at):
            await answered.wait()
        if not waiting.is_answered:
            waiting.expire()  # what has not begun is not carried out
            if not waiting.is_answered:
                waiting.abandon()
            return None
        return self._result(request, waiting)

    # A controller in this process.

    def _ask_here(self, request: "Message", client: Call | None) -> "Message | KafkaError | Waiting[Message]":
        services = self._services
        api = self._api(request.api_key)
        now_ms = services.clock.now_ms()
        client_id = None if client is None else client.client_id
        call = Call(services, self._connection, api.key, api.last, 0, client_id, now_ms)
        if client is not None and client.meter is not None:
            # Of its own: what becomes of this request does not make the client's connection deaf.
            connection = ConnectionState(0, self._connection.listener, client.peer, NOWHERE)
            meter = services.quotas.meter(client_id, 0, connection)
            call = MeteredCall(services, connection, api.key, api.last, 0, client_id, now_ms, meter)
        try:
            answer: Message | Waiting[Message] = api.module.handle(request, call)
        except Exception as error:
            return self._failure(request, error)
        return answer

    def _result(self, request: "Message", waiting: "Waiting[Message]") -> "Message | KafkaError":
        try:
            return waiting.result()
        except Exception as error:
            return self._failure(request, error)

    def _failure(self, request: "Message", error: Exception) -> "Message | KafkaError":
        """What the controller answers to a request whose handler raised ``error``."""
        api = self._api(request.api_key)
        if not isinstance(error, (KafkaError, StorageError)):
            self._services.log.failure(f"{api.name} of this node's own broker failed", error)
        code = error_code_of(error)
        message = error.message if isinstance(error, KafkaError) else None
        response = api.error_response(request, api.last, code, message)
        return KafkaError(code, message) if response is None else response

    def _api(self, key: int) -> ServedApi:
        api = self._apis.get(key)
        if api is None:
            api = self._apis[key] = ServedApi(APIS[key])
            api.load()
        return api

    # Another node's controller.

    async def _ask_there(
        self, request: "Message", client: Call | None, give_up_at: float
    ) -> "Message | None":
        from broker.network.node_client import NodeUnreachable, warn_of_controller

        services = self._services
        address = services.quorum.controller_address()
        if address is None:
            self._is_away = True
            return None  # there is none, or it is not known yet
        if client is not None or request.api_key == ApiKey.ENVELOPE:
            turn: AbstractAsyncContextManager[object] = self._forwarding
        else:
            turn = nullcontext()
        with trio.CancelScope(deadline=give_up_at) as scope:
            self._under_way[scope] = address
            try:
                async with turn:
                    answer = await self._exchange(request, client)
                self._is_away = False
                return answer
            except NodeUnreachable as error:
                self._is_away = True
                warn_of_controller(services.log, address, error)
            finally:
                del self._under_way[scope]
        return None

    async def _exchange(self, request: "Message", client: Call | None) -> "Message | None":
        """One question over one connection, and its answer.  Raises NodeUnreachable."""
        timeout_seconds: float = self._services.config.get("controller.socket.timeout.ms") / 1000
        node = self._idle.pop() if self._idle else self._new_client()
        try:
            if client is None:
                answer: Message | None = await node.ask(request, timeout_seconds=timeout_seconds)
            else:
                answer = await _ask_for(client, request, node, timeout_seconds)
            self.versions = node.api_versions
            return answer
        finally:
            if len(self._idle) < IDLE_MAX:
                self._idle.append(node)
            else:
                node.close()

    def _new_client(self) -> "NodeClient":
        from broker.network.node_client import NodeClient  # a node that is alone needs none

        services = self._services
        return NodeClient(
            services.transport,
            services.quorum.controller_address,
            client_id=f"broker-{services.node_id}-to-controller",
        )


async def _ask_for(
    client: Call, request: "Message", node: "NodeClient", timeout_seconds: float
) -> "Message | None":
    """The answer to a request in a client's name; None if this is not the active controller.

    Raises NodeUnreachable.
    """
    from broker.life.forwarding import enveloped, opened
    from broker.network.node_client import NodeUnreachable, response_class

    await node.connect(timeout_seconds=timeout_seconds)
    version = node.highest_version(type(request))
    answer = await node.ask(enveloped(request, version, client), timeout_seconds=timeout_seconds)
    if says_not_controller(answer):
        return None
    response = response_class(type(request))
    try:
        return response.decode(opened(answer, response, version), version)
    except (CloseConnection, KafkaError, DecodeError) as error:
        node.close()
        raise NodeUnreachable(f"it does not open an envelope: {error}") from error


def _when_answered(waiting: "Waiting[Message]", callback: Callable[[], None]) -> None:
    if waiting.is_answered:
        callback()
    else:
        waiting.notify(callback)


def says_not_controller(answer: "Message") -> bool:
    """Whether the node that answered is not the active controller (any more)."""
    parts = [answer]
    for name in PARTS:
        parts += getattr(answer, name, None) or ()
    return any(getattr(part, "error_code", 0) == ErrorCode.NOT_CONTROLLER for part in parts)


@asynccontextmanager
async def open_channel(services: "Services") -> AsyncGenerator[ControllerChannel]:
    """The channel at work.  What is still asked when the block is left is asked no longer."""
    async with trio.open_nursery() as nursery:
        channel = ControllerChannel(services, nursery.start_soon)
        services.quorum.on_leader_change(channel.controller_moved)
        try:
            yield channel
        finally:
            nursery.cancel_scope.cancel()
            channel.close()
