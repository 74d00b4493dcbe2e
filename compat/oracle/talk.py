"""What one round of a conversation says to a broker, and what is kept of the answers."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from compat.oracle.apis import Api, api_of
from compat.oracle.brief import Json, brief_answer
from compat.oracle.connection import PATIENCE_SECONDS, Connection, Silence, read_answer
from compat.oracle.conversation import Conversation
from compat.oracle.names import Names, Origin
from compat.oracle.outcomes import NOT_ASKED
from compat.oracle.preparing import Preparing
from protocol.api_keys import ApiKey
from protocol.errors import DecodeError, EncodeError
from protocol.schema import Message

ORACLE: Final = "oracle"
"""The client id of whoever speaks unless another is named."""

NAMELESS: Final = "nobody"
"""Who has no client id at all."""

Alter = Callable[[Message], object]
"""Changes an answer before it is looked at: for tests of the judge itself."""


class Step(NamedTuple):
    """One request and what came of it."""

    label: str
    api: str
    version: int
    outcome: Json
    """A dict is an answer; a text says why there is none."""


class Asked(NamedTuple):
    """A request that was sent, or was not because its version cannot carry it."""

    api: Api
    version: int
    """That of the answer."""
    by: str
    correlation_id: int
    refused: str = ""


class Talk(Preparing):
    """One round of a conversation.

    Labels of steps differ within a conversation.  ``by`` names the client that asks: each has a connection of
    its own.  Where there is no answer an empty one is returned, so that a conversation can go on.
    """

    def __init__(
        self,
        held: Conversation,
        turn: int,
        origin: Origin,
        token: str,
        alter: Alter | None = None,
        spare: list[Connection] | None = None,
    ) -> None:
        prefix = f"o{token}-"
        super().__init__(origin, prefix, Names(prefix, origin), spare)
        self.turn = turn
        self.steps: list[Step] = []
        self.held = held
        self._alter = alter
        self._connections: dict[str, Connection] = {}
        self._asked: dict[str, Asked] = {}

    def close(self) -> None:
        super().close()
        for connection in self._connections.values():
            connection.close()

    def version_of(self, key: ApiKey) -> int:
        """The version in which this round asks that API."""
        return self.held.version_of(key, self.turn)

    def ask(
        self,
        label: str,
        request: Message,
        *,
        by: str = ORACLE,
        version: int | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> Any:
        """Send a request, keep what comes of it, and return the answer."""
        self.start(label, request, by=by, version=version)
        return self.finish(label, patience_seconds=patience_seconds)

    def start(self, label: str, request: Message, *, by: str = ORACLE, version: int | None = None) -> None:
        """Send a request whose answer may have to wait for something else; ``finish`` takes it."""
        key = ApiKey(request.api_key)
        asked = self.version_of(key) if version is None else version
        refused, correlation_id = "", 0
        try:
            correlation_id = self._connection(by).send(request, asked)
        except EncodeError as error:
            refused = f"{NOT_ASKED}: {error}"
        self._asked[label] = Asked(api_of(key), asked, by, correlation_id, refused)

    def finish(self, label: str, *, patience_seconds: float = PATIENCE_SECONDS) -> Any:
        """Wait for the answer to what was started under that label."""
        asked = self._asked.pop(label)
        answer = asked.api.response()
        if asked.refused:
            self._keep(Step(label, asked.api.name, asked.version, asked.refused))
            return answer
        frame = self._connections[asked.by].receive(asked.correlation_id, patience_seconds=patience_seconds)
        if isinstance(frame, Silence):
            if frame is not Silence.NO_ANSWER:
                self._connections.pop(asked.by).close()
            self._keep(Step(label, asked.api.name, asked.version, frame.value))
            return answer
        try:
            answer = read_answer(frame, asked.api.response, asked.version)
            if self._alter is not None:
                self._alter(answer)
            outcome = brief_answer(answer, self._names)
        except DecodeError as error:
            outcome = f"not readable: {error}"
        self._keep(Step(label, asked.api.name, asked.version, outcome))
        return answer

    def ask_in_vain(self, label: str, request: Message, *, by: str = ORACLE) -> None:
        """Send a request that may stay unanswered, and see whether the connection goes on."""
        self.start(label, request, by=by)
        connection = self._connection(by)
        connection.send_probe()
        self.finish(label)
        if isinstance(self.steps[-1].outcome, dict):
            connection.receive(0)  # the answer to the probe

    def ask_bytes(
        self,
        label: str,
        key: ApiKey,
        body: bytes,
        *,
        version: int | None = None,
        answer_version: int | None = None,
    ) -> Any:
        """Send a body that need not be one, in a version that need not exist."""
        api = api_of(key)
        asked = self.version_of(key) if version is None else version
        flexible = asked in api.request.flexible
        correlation_id = self._connection(ORACLE).send_body(key, asked, body, flexible=flexible)
        expected = asked if answer_version is None else answer_version
        self._asked[label] = Asked(api, expected, ORACLE, correlation_id)
        return self.finish(label)

    def say(self, label: str, data: bytes) -> None:
        """Send bytes that are no request on a connection of their own, and see whether it stays open."""
        connection = Connection(self.origin.address, ORACLE)
        try:
            connection.send_bytes(data)
            frame = connection.receive(0, patience_seconds=1)
        finally:
            connection.close()
        outcome = frame.value if isinstance(frame, Silence) else f"{len(frame)} bytes"
        self._keep(Step(label, "Bytes", 0, outcome))

    def _keep(self, step: Step) -> None:
        assert all(kept.label != step.label for kept in self.steps), f"two steps are called {step.label}"
        self.steps.append(step)

    def _connection(self, by: str) -> Connection:
        if by not in self._connections:
            self._connections[by] = Connection(self.origin.address, None if by == NAMELESS else by)
        return self._connections[by]
