"""A broker that coordinates groups and transactions, on a disk in memory and on Trio's virtual time."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any, TypeVar

import trio

from broker.apis.table import APIS
from broker.groups.service import GroupService, open_groups
from broker.metadata.image import MetadataImage
from broker.metadata.topic_names import GROUP_OFFSETS
from broker.network.call import Address, Call, ConnectionState, Listener
from broker.network.waiting import NotYet, Waiting
from broker.transactions.service import TransactionService, open_transactions
from protocol.errors import KafkaError
from protocol.schema import Message
from storage.memory_filesystem import MemoryFileSystem
from tests.broker.partitions.one_broker import NODE_ID, START_MS, ManualClock, OneBroker, one_broker

Response = TypeVar("Response", bound=Message)

PARTITION_COUNT = 3


class VirtualClock(ManualClock):
    """Wall time that passes with Trio's."""

    def __init__(self) -> None:
        super().__init__()
        self._began = trio.current_time()

    def current_time(self) -> float:
        return trio.current_time()

    def now_ms(self) -> int:
        return START_MS + round((trio.current_time() - self._began) * 1000)


class TopicMaker:
    """Stands in for ``AutomaticTopics``."""

    def __init__(self, broker: OneBroker) -> None:
        self._broker = broker
        self.held: list[Callable[[], None]] | None = None
        self.refusal: KafkaError | None = None

    def ensure(
        self, name: str, done: Callable[[KafkaError | None], None], settings: Mapping[str, str] | None = None
    ) -> None:
        def make() -> None:
            if self.refusal is None and name not in self._broker.image.topics:
                self._broker.create_topic(name, PARTITION_COUNT, settings=settings)
            done(self.refusal)

        if self.held is None:
            make()
        else:
            self.held.append(make)


class GroupBroker:
    """Requests come from clients by name, each on its connection."""

    def __init__(self, broker: OneBroker) -> None:
        self.broker = broker
        self.topic_maker = TopicMaker(broker)
        self.groups: GroupService
        self.transactions: TransactionService

    @property
    def image(self) -> MetadataImage:
        return self.broker.image

    @property
    def lines(self) -> str:
        return self.broker.lines.getvalue()

    def make_offsets_topic(self) -> bytes:
        return self.broker.create_topic(GROUP_OFFSETS, PARTITION_COUNT)

    def begin(self, request: Message, version: int, client: str = "client") -> Any:
        """What the handler returns for ``request`` as it comes over the wire."""
        handler = import_module(f"broker.apis.{APIS[request.api_key].module}")
        connection = ConnectionState(
            1, Listener("PLAINTEXT"), Address("127.0.0.1", 1), Address("127.0.0.1", 9092)
        )
        call = Call(self.broker.services, connection, request.api_key, version, 1, client, START_MS)
        data = request.encode(version)
        try:
            return handler.handle(type(request).decode(bytearray(data), version), call)
        except NotYet:
            self.broker.make_missing()
            return handler.handle(type(request).decode(bytearray(data), version), call)

    def ask(
        self, request: Message, response: type[Response], version: int, client: str = "client"
    ) -> Response:
        """The answer as the client reads it.  It must be there at once."""
        return as_read(self.begin(request, version, client), response, version)


def as_read(answer: Any, response: type[Response], version: int) -> Response:
    """An answer after it has travelled in this version."""
    if isinstance(answer, Waiting):
        answer = answer.result()
    assert isinstance(answer, response)
    return response.decode(answer.encode(version), version)


@asynccontextmanager
async def group_broker(
    settings: Mapping[str, str] | None = None,
    *,
    file_system: MemoryFileSystem | None = None,
    image: MetadataImage | None = None,
    node_id: int = NODE_ID,
) -> AsyncGenerator[GroupBroker]:
    """A broker with an empty disk, or one that finds what another has left.  Leaving it is a crash."""
    given = {
        "offsets.topic.num.partitions": str(PARTITION_COUNT),
        "transaction.state.log.num.partitions": str(PARTITION_COUNT),
        **(settings or {}),
    }
    async with one_broker(given, file_system=file_system, image=image, node_id=node_id) as broker:
        broker.clock = VirtualClock()
        group_broker = GroupBroker(broker)
        broker.automatic_topics = group_broker.topic_maker  # type: ignore[attr-defined]
        async with open_groups(broker.services) as group_broker.groups:
            broker.groups = group_broker.groups  # type: ignore[attr-defined]
            async with open_transactions(broker.services) as group_broker.transactions:
                broker.transactions = group_broker.transactions  # type: ignore[attr-defined]
                yield group_broker


__all__ = ["NODE_ID", "START_MS", "GroupBroker", "as_read", "group_broker"]
