"""Settings of the start itself."""

import pytest

from broker.clock import BrokerClock
from broker.errors import KafkaError, StartupError
from broker.partitions import directory_news
from broker.partitions.directory_news import report_offline
from protocol.error_codes import ErrorCode
from storage.memory_filesystem import MemoryFileSystem
from tests.broker.config.acting.whole_broker import whole_broker


@pytest.mark.acts("server.max.startup.time.ms")
async def test_a_start_may_take_too_long(clock: BrokerClock) -> None:
    with pytest.RaisesGroup(
        pytest.RaisesExc(StartupError, match=r"not up after server\.max\.startup\.time\.ms=0")
    ):
        async with whole_broker(clock, {"server.max.startup.time.ms": "0"}):
            pass
    async with whole_broker(clock, {"server.max.startup.time.ms": "60000"}) as broker:
        await broker.pass_time(120_000)
        await broker.create()


@pytest.mark.acts("log.dir.failure.timeout.ms")
async def test_how_long_a_broken_directory_may_go_untold(
    clock: BrokerClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def refuse(*_: object, timeout_seconds: float) -> None:
        asked.append(clock.advanced_ms)
        clock.advance(400)
        raise KafkaError(ErrorCode.NOT_CONTROLLER)

    monkeypatch.setattr(directory_news, "RETRY_SECONDS", 0)
    async with whole_broker(
        clock, {"log.dir.failure.timeout.ms": "1000"}, file_system=MemoryFileSystem()
    ) as broker:
        monkeypatch.setattr(broker.services.channel, "ask", refuse)
        with pytest.raises(KafkaError):
            await report_offline(broker.services, bytes(16))
        assert len(asked) == 3
