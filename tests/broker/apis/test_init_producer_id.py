"""InitProducerId, against what Kafka 4.4 answered to the same requests."""

from typing import Any

import pytest

from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.broker.partitions.one_broker import one_broker

REFUSED = InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_id=-1, producer_epoch=-1)


def request(**options: Any) -> InitProducerIdRequest:
    return InitProducerIdRequest(**{"transactional_id": None, "transaction_timeout_ms": 60_000, **options})


@pytest.mark.parametrize("version", range(7))
async def test_every_request_gets_an_id_of_its_own(version: int) -> None:
    async with one_broker() as broker:
        for producer_id in (0, 1):
            response = broker.ask(request(), version)
            assert response == InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
            assert type(response).decode(response.encode(version), version) == response


@pytest.mark.parametrize(
    ("producer_id", "producer_epoch"),
    [(5, 3), (3000, 32_767), (-5, 3), (-5, -3), (10**15, 0)],
)
async def test_whatever_the_producer_had_before(producer_id: int, producer_epoch: int) -> None:
    async with one_broker() as broker:
        response = broker.ask(request(producer_id=producer_id, producer_epoch=producer_epoch), 5)
        assert (response.error_code, response.producer_id, response.producer_epoch) == (0, 0, 0)


@pytest.mark.parametrize("transactional_id", [None, "", "id"])
@pytest.mark.parametrize(("producer_id", "producer_epoch"), [(5, -1), (-1, 3)])
async def test_an_id_without_epoch_and_the_reverse(
    producer_id: int, producer_epoch: int, transactional_id: str | None
) -> None:
    async with one_broker() as broker:
        asked = request(
            producer_id=producer_id, producer_epoch=producer_epoch, transactional_id=transactional_id
        )
        assert broker.ask(asked, 5) == REFUSED


async def test_an_empty_transactional_id_is_none() -> None:
    async with one_broker() as broker:
        assert broker.ask(request(transactional_id=""), 5) == REFUSED


async def test_waiting_for_the_next_block() -> None:
    async with one_broker() as broker:
        broker.producer_ids.at_hand = 0
        first, second = broker.ask(request(), 5), broker.ask(request(), 5)
        assert isinstance(first, Waiting)
        give_first, give_second = broker.producer_ids.waiting
        give_first(1000)
        give_second(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
        assert first.result() == InitProducerIdResponse(producer_id=1000, producer_epoch=0)
        assert second.result().error_code == ErrorCode.UNKNOWN_SERVER_ERROR
