"""Settings of transactions and their coordinator."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from broker.clock import BrokerClock
from broker.metadata.topic_names import TRANSACTION_STATE
from protocol.error_codes import ErrorCode
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.broker.config.acting.members import GROUPS, OF_TRANSACTIONS, coordinate, steadily
from tests.broker.config.acting.test_groups import watched
from tests.broker.config.acting.whole_broker import WholeBroker, whole_broker
from tests.broker.groups.group_broker import group_broker
from tests.broker.transactions.test_service import (
    COMMIT,
    TIMEOUT_MS,
    Writer,
    add,
    disk,
    end,
    initialize,
    listed,
    make_topics,
    produce,
    produced,
    reply_of,
    state,
)


async def initialized(broker: WholeBroker, *, timeout_ms: int = 1000, two_phases: bool = False) -> Any:
    request = InitProducerIdRequest(
        transactional_id="x", transaction_timeout_ms=timeout_ms, enable2_pc=two_phases
    )
    return await steadily(broker, request, InitProducerIdResponse, 6 if two_phases else 5)


@pytest.mark.acts("transaction.max.timeout.ms")
async def test_a_transaction_may_not_take_for_ever(clock: BrokerClock) -> None:
    async with whole_broker(clock, {**GROUPS, "transaction.max.timeout.ms": "2000"}) as broker:
        await coordinate(broker, OF_TRANSACTIONS)
        for timeout_ms, code in ((2000, 0), (2001, ErrorCode.INVALID_TRANSACTION_TIMEOUT)):
            assert (await initialized(broker, timeout_ms=timeout_ms)).error_code == code


@pytest.mark.acts("transaction.two.phase.commit.enable")
@pytest.mark.parametrize("enabled", ["true", "false"])
async def test_participants_may_decide(clock: BrokerClock, enabled: str) -> None:
    settings = {"transaction.two.phase.commit.enable": enabled, "unstable.api.versions.enable": "true"}
    async with whole_broker(clock, GROUPS | settings) as broker:
        await coordinate(broker, OF_TRANSACTIONS)
        code = (await initialized(broker, two_phases=True)).error_code
        assert code == (0 if enabled == "true" else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


@pytest.mark.acts("transaction.state.log.num.partitions", "transaction.state.log.segment.bytes")
async def test_the_topic_of_transactions_is_made_as_it_is_wanted(clock: BrokerClock) -> None:
    settings = {
        "transaction.state.log.num.partitions": "3",
        "transaction.state.log.segment.bytes": "2000000",
    }
    async with whole_broker(clock, GROUPS | settings) as broker:
        await coordinate(broker, OF_TRANSACTIONS)
        assert len(broker.services.image.topics[TRANSACTION_STATE].partitions) == 3
        assert broker.leader(TRANSACTION_STATE).settings["segment.bytes"] == 2_000_000


@pytest.mark.acts("transaction.state.log.load.buffer.size")
async def test_transactions_are_loaded_piece_by_piece(
    clock: BrokerClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with whole_broker(clock, GROUPS) as broker:
        await coordinate(broker, OF_TRANSACTIONS)
        for _ in range(3):
            assert (await initialized(broker)).error_code == 0
    reads = watched(monkeypatch)
    settings = {**GROUPS, "transaction.state.log.load.buffer.size": "50"}
    async with whole_broker(clock, settings, file_system=broker.file_system) as broker:
        await broker.until(lambda: reads.count(50) >= 3)


@pytest.mark.acts("transaction.abort.timed.out.transaction.cleanup.interval.ms")
async def test_how_often_late_transactions_are_looked_for(autojump_clock: MockClock) -> None:
    settings = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100000"}
    async with group_broker(settings) as broker:
        make_topics(broker)
        writer = initialize(broker)
        assert add(broker, writer) == 0
        await trio.sleep(TIMEOUT_MS / 1000 + 20)
        assert state(broker) == "Ongoing"
        await trio.sleep(100)
        assert state(broker) == "CompleteAbort"


@pytest.mark.acts("transaction.remove.expired.transaction.cleanup.interval.ms")
async def test_how_often_old_ids_are_looked_for(autojump_clock: MockClock) -> None:
    settings = {
        "transactional.id.expiration.ms": "1000",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "100000",
    }
    async with group_broker(settings) as broker:
        make_topics(broker)
        initialize(broker)
        await trio.sleep(90)
        assert listed(broker) == ["x"]
        await trio.sleep(20)
        assert listed(broker) == []


@pytest.mark.acts("add.partitions.to.txn.retry.backoff.ms", "add.partitions.to.txn.retry.backoff.max.ms")
@pytest.mark.parametrize(("pause_ms", "patience_ms", "answers_after"), [(20, 3000, 3.0), (2000, 1000, 2.0)])
async def test_how_long_a_quick_producer_is_kept_waiting(
    autojump_clock: MockClock, pause_ms: int, patience_ms: int, answers_after: float
) -> None:
    settings = {
        "add.partitions.to.txn.retry.backoff.ms": str(pause_ms),
        "add.partitions.to.txn.retry.backoff.max.ms": str(patience_ms),
    }
    file_system = disk()
    async with group_broker(settings, file_system=file_system) as broker:
        make_topics(broker)
        writer = initialize(broker)
        assert produce(broker, writer, version=12) == 0
        for _ in range(1000):
            file_system.refuse("write", 5, path_suffix="t-0/00000000000000000000.log")
        assert end(broker, writer, COMMIT, version=5) == 0
        waiting = broker.begin(produced(Writer(writer.producer_id, 1)), 12)
        await trio.sleep(answers_after - 0.5)
        assert not waiting.is_answered
        await trio.sleep(1)
        assert reply_of(waiting, 12).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
