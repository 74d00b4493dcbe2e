"""What franz-go does in its own way: one object both consumes and produces in transactions."""

from collections.abc import Sequence

from compat.scenarios.python.client import Place, Record, TakenRecord
from compat.scenarios.python.pipeline import Pipeline
from compat.scenarios.remote.client import RemoteClient, record_in, record_out
from compat.scenarios.remote.process import RemoteObject


class Session(RemoteObject, Pipeline):
    """franz-go's GroupTransactSession."""

    def poll(self, wait_seconds: float, records_max: int) -> list[TakenRecord]:
        records = self.call("poll", wait_ms=round(1000 * wait_seconds), records_max=records_max)
        return [record_in(record) for record in records]

    def begin(self) -> None:
        self.call("begin")

    def send(self, topic: str, records: Sequence[Record]) -> list[Place]:
        places = self.call("send", topic=topic, records=[record_out(record) for record in records])
        return [Place(*place) for place in places]

    def commit(self) -> None:
        if not self.call("commit"):
            raise RuntimeError("the session aborted instead of committing")

    def abort(self) -> None:
        self.call("abort")

    def close(self) -> None:
        self.call("close")


class FranzGo(RemoteClient):
    def pipeline(
        self, address: str, transactional_id: str, group: str, topic: str, *, new_protocol: bool = False
    ) -> Pipeline:
        opened = self.library.call(
            "pipeline",
            address=address,
            transactional_id=transactional_id,
            group=group,
            topics=[topic],
            new_protocol=new_protocol,
        )
        return Session(self.process, opened)
