"""From a request's bytes to its answer's bytes: header, table, version, body, handler, answer."""

import struct
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from broker.apis.table import Api
from broker.errors import CloseConnection, DecodeError, ErrorCode, KafkaError, error_code_of
from broker.network.call import Call, ConnectionState, MeteredCall
from broker.network.sending import Part
from broker.network.waiting import NotYet, Waiting
from protocol.api_keys import ApiKey
from protocol.headers import read_client_id, read_request_start
from protocol.schema import Message
from storage.errors import StorageError
from storage.file_range import FileRange

if TYPE_CHECKING:
    from broker.services import Services

_API_KEY = struct.Struct(">h")
_SIZE = struct.Struct(">i")
_ANSWER_START = struct.Struct(">ii")
_ANSWER_START_FLEXIBLE = struct.Struct(">iix")

BROKERS_FIRST: Final = frozenset(
    {
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    }
)
"""APIs of the controller in which a broker has its own say first: their handlers pass on what is left."""

_NO_ANSWER: Final[list[Part]] = []


class Dispatcher:
    """Answers the requests of one kind of listener.

    A module of ``broker.apis`` answers with its ``handle(request, call)``, which returns

    * a response, or its body as ``bytes`` that are encoded already;
    * a ``Waiting`` that will be answered with one of these;
    * None, if the request has no answer (Produce with acks=0).

    A handler that cannot begin yet raises ``NotYet``, and is called again with the same request.

    Any other exception of it becomes an error response: ``KafkaError`` and ``StorageError`` with their
    own code, anything else with UNKNOWN_SERVER_ERROR and a traceback in the log.  Where an error of the
    whole request belongs in its response is known to the module, if it offers ``error_response(request,
    code)``, which may return None; otherwise it is the top-level error code, if there is one.  Where there
    is none, the connection is closed.
    """

    def __init__(self, services: "Services", apis: Iterable[Api]) -> None:
        self._services = services
        self._quotas = services.quotas
        self._apis = {int(api.key): ServedApi(api) for api in apis}
        services.log.on_requests(self._log_requests)

    def _log_requests(self, are_wanted: bool) -> None:
        """Log each request from now on, or none: who wants none pays nothing for it."""
        if are_wanted:
            self.start = self._start_logged  # type: ignore[method-assign]
        else:
            self.__dict__.pop("start", None)

    def _start_logged(
        self, frame: memoryview, connection: ConnectionState
    ) -> "list[Part] | PendingRequest | NotYet":
        log = self._services.log
        try:
            key, version, correlation_id = read_request_start(frame)
            api = self._apis[key]
            if not api.loaded:
                self._load(api)
            client_id, position = read_client_id(frame, flexible=version >= api.flexible_from)
        except (DecodeError, KeyError):
            log.request(f"{len(frame)} bytes from {connection}, which are no request that is served here")
        else:
            said = (
                f"{api.name} version {version} from {connection}, client {client_id}, number {correlation_id}"
            )
            log.request(f"{said}: {len(frame) - position} bytes")
        return Dispatcher.start(self, frame, connection)

    def may_overlap(self, frame: memoryview) -> bool:
        """Whether this request may start while earlier ones of its kind are not answered."""
        if len(frame) < _API_KEY.size:
            return False
        api = self._apis.get(_API_KEY.unpack_from(frame)[0])
        return api is not None and api.may_overlap

    def start(self, frame: memoryview, connection: ConnectionState) -> "list[Part] | PendingRequest | NotYet":
        """Handle one request: the parts of its answer, none if it has none, or its place.

        Or nothing was done, because something has to be waited for first: then start it again.

        Raises ``CloseConnection`` and nothing else.
        """
        try:
            key, version, correlation_id = read_request_start(frame)
            api = self._apis.get(key)
            if api is None:
                raise CloseConnection(f"API key {key} is not served on {connection.listener.name}")
            if not api.first <= version <= api.last:
                return self._refuse_version(api, frame, version, correlation_id)
            if not api.loaded:
                self._load(api)
            client_id, position = read_client_id(frame, flexible=version >= api.flexible_from)
            request = api.request.decode_from(frame, position, version)[0]
        except DecodeError as error:
            raise CloseConnection(f"its request cannot be read: {error}") from error
        services = self._services
        now_ms = services.clock.now_ms()
        if self._quotas.is_active:
            meter = self._quotas.meter(client_id, len(frame), connection)
            call: Call = MeteredCall(
                services, connection, key, version, correlation_id, client_id, now_ms, meter
            )
        else:
            call = Call(services, connection, key, version, correlation_id, client_id, now_ms)
        try:
            if api.is_forwarded and not connection.listener.is_controller:
                answer: object = self._ask_controller(api, frame, request, call)
            else:
                answer = api.module.handle(request, call)
            if isinstance(answer, Waiting):
                if not answer.is_answered:
                    if call.meter is not None:
                        call.meter.pause()
                    return PendingRequest(self, api, request, call, answer)
                answer = answer.result()
            return self._encode(api, call, answer)
        except CloseConnection:
            raise
        except NotYet as not_yet:
            return not_yet
        except Exception as error:
            return self._encode_failure(api, request, call, error)

    def _ask_controller(self, api: "ServedApi", frame: memoryview, request: Message, call: Call) -> object:
        """Let the active controller answer, wherever it is (KIP-590)."""
        if self._services.channel.is_local:
            answer: object = api.module.handle(request, call)
            if isinstance(answer, Waiting) and not answer.is_answered:
                return self._or_successor(api, request, call, answer)
            return answer
        from broker.life.forwarding import forward, sealed  # a node that is alone needs none

        return forward(sealed(bytes(frame), call), call, api.response)

    def _or_successor(
        self, api: "ServedApi", request: Message, call: Call, here: Waiting[Any]
    ) -> Waiting[Any]:
        """What this node's controller answers, or another one, if it has handed its office over meanwhile."""
        waiting: Waiting[Any] = Waiting(here.deadline, here.expire)

        def answered() -> None:
            if self._services.channel.is_local:
                waiting.answer_with(here.result)
                return
            from broker.life.channel import says_not_controller
            from broker.life.forwarding import enveloped, forward

            try:
                answer = here.result()
            except Exception as error:
                waiting.fail(error)
                return
            if says_not_controller(answer):
                forward(enveloped(request, call.version, call), call, api.response).pass_on(waiting)
            else:
                waiting.answer(answer)

        here.notify(answered)
        waiting.on_abandoned(here.abandon)
        return waiting

    def finish(self, pending: "PendingRequest") -> list[Part]:
        """The answer of a request that had to wait.  Raises ``CloseConnection`` and nothing else."""
        if pending.call.meter is not None:
            pending.call.meter.resume()
        try:
            return self._encode(pending.api, pending.call, pending.waiting.result())
        except CloseConnection:
            raise
        except Exception as error:
            return self._encode_failure(pending.api, pending.request, pending.call, error)

    def _load(self, api: "ServedApi") -> None:
        try:
            api.load()
        except Exception as error:
            self._services.log.failure(f"the code of {api.name} cannot be loaded", error)
            raise CloseConnection(f"{api.name} cannot be served") from error

    def _encode(self, api: "ServedApi", call: Call, answer: object) -> list[Part]:
        meter = call.meter
        if meter is not None:
            throttle_ms = meter.settle(api.key, answer)
            if throttle_ms:
                answer = api.throttled(answer, call.version, throttle_ms)
        if answer is None:
            return _NO_ANSWER
        version = call.version
        if version >= api.answer_flexible_from:
            start = _ANSWER_START_FLEXIBLE.pack(0, call.correlation_id)
        else:
            start = _ANSWER_START.pack(0, call.correlation_id)
        parts: list[Part]
        if isinstance(answer, bytes):
            parts = [bytearray(start + answer)]
        else:
            parts = answer.encode_parts(version, start)  # type: ignore[attr-defined]
        first = parts[0]
        assert isinstance(first, bytearray)
        size = len(first) - _SIZE.size
        if len(parts) > 1:
            size += sum(part.size_bytes if isinstance(part, FileRange) else len(part) for part in parts[1:])
        _SIZE.pack_into(first, 0, size)
        if meter is not None:
            meter.has_answered()
        return parts

    def _encode_failure(self, api: "ServedApi", request: Message, call: Call, error: Exception) -> list[Part]:
        """The answer to a request whose handler raised ``error``."""
        log = self._services.log
        code = error_code_of(error)
        if isinstance(error, StorageError):
            log.error(f"{api.name} failed: {error}")
        elif not isinstance(error, KafkaError):
            log.failure(f"{api.name} version {call.version} from {call.connection} failed", error)
        message = error.message if isinstance(error, KafkaError) else None
        try:
            response = api.error_response(request, call.version, code, message)
            if response is not None:
                return self._encode(api, call, response)
        except Exception as second:
            log.failure(f"the error answer of {api.name} version {call.version} failed", second)
        raise CloseConnection(f"{api.name} failed with {code.name}, which its answer cannot say") from error

    def _refuse_version(
        self, api: "ServedApi", frame: memoryview, version: int, correlation_id: int
    ) -> list[Part]:
        """Close, except that a client which asks for the versions is told how to ask (KIP-511)."""
        if api.key != ApiKey.API_VERSIONS:
            raise CloseConnection(f"{api.name} has no version {version}")
        from protocol.messages.api_versions import ApiVersion, ApiVersionsResponse

        if not api.loaded:
            self._load(api)
        read_client_id(frame, flexible=version >= api.flexible_from)
        response = ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[ApiVersion(api_key=api.key, min_version=api.announced_from, max_version=api.last)],
        )
        answer = response.encode_parts(0, _ANSWER_START.pack(0, correlation_id))
        _SIZE.pack_into(answer[0], 0, len(answer[0]) - _SIZE.size)
        return answer


class PendingRequest:
    """A request whose handler has returned a ``Waiting``."""

    __slots__ = ("_dispatcher", "api", "call", "request", "waiting")

    def __init__(
        self,
        dispatcher: Dispatcher,
        api: "ServedApi",
        request: Message,
        call: Call,
        waiting: Waiting[Any],
    ) -> None:
        self._dispatcher = dispatcher
        self.api = api
        self.request = request
        self.call = call
        self.waiting = waiting

    @property
    def may_overlap(self) -> bool:
        return self.api.may_overlap

    def finish(self) -> list[Part]:
        return self._dispatcher.finish(self)


class ServedApi:
    """One line of the table, with the code behind it, imported with its first request."""

    __slots__ = (
        "announced_from",
        "answer_flexible_from",
        "first",
        "flexible_from",
        "handler_name",
        "is_forwarded",
        "key",
        "last",
        "loaded",
        "may_overlap",
        "module",
        "module_name",
        "name",
        "request",
        "response",
    )

    module: ModuleType
    request: type[Message]
    response: type[Message]

    def __init__(self, api: Api) -> None:
        self.key = api.key
        self.first = api.first
        self.last = api.last
        self.announced_from = api.announced_from
        self.may_overlap = api.may_overlap
        self.is_forwarded = api.is_forwardable and api.key not in BROKERS_FIRST
        self.module_name = api.module
        self.handler_name = api.handler
        self.name = "".join(word.capitalize() for word in api.module.split("_"))
        self.loaded = False

    def load(self) -> None:
        """Import the handler and the messages."""
        messages = import_module(f"protocol.messages.{self.module_name}")
        self.request = getattr(messages, f"{self.name}Request")
        self.response = getattr(messages, f"{self.name}Response")
        self.module = import_module(f"broker.apis.{self.handler_name}")
        self.flexible_from = self.request.flexible.start if self.request.flexible else self.last + 1
        # The client of ApiVersions cannot know yet what the broker understands: header version 0.
        answers_flexible = self.response.flexible and self.key != ApiKey.API_VERSIONS
        self.answer_flexible_from = self.response.flexible.start if answers_flexible else self.last + 1
        self.loaded = True

    def throttled(self, answer: object, version: int, throttle_ms: int) -> object:
        """The same answer, if there is one, with the time that its client has to wait, if it can say so."""
        if answer is None:
            return None
        for field in self.response.declared_fields:
            if field.name == "throttle_time_ms" and version in field.versions:
                if not isinstance(answer, bytes):
                    answer.throttle_time_ms = throttle_ms  # type: ignore[attr-defined]
                else:
                    assert field is self.response.declared_fields[0]
                    answer = _SIZE.pack(throttle_ms) + answer[_SIZE.size :]
        return answer

    def error_response(
        self, request: Message, version: int, code: ErrorCode, message: str | None
    ) -> Message | None:
        """A response that says ``code`` for the whole request; None if there is no way to say it."""
        build = getattr(self.module, "error_response", None)
        if build is not None:
            return build(request, code)  # type: ignore[no-any-return]
        fields = {field.name for field in self.response.declared_fields if version in field.versions}
        if "error_code" not in fields:
            return None
        values: dict[str, object] = {"error_code": code}
        if "error_message" in fields:
            values["error_message"] = message
        return self.response(**values)
