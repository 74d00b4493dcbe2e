"""Producer ids: blocks from the controller, single ids for producers."""

from typing import cast

import pytest

from broker.controller.producer_ids import BLOCK_SIZE, ProducerIdBlock, allocate_producer_ids
from broker.life.channel import ControllerChannel, Done
from broker.metadata.feed import MetadataFeed
from broker.metadata.producer_ids import PREFETCH_BELOW, ProducerIds
from broker.services import Services
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from protocol.stored.metadata_records import ProducerIdsRecord
from tests.broker.metadata.records import after, broker, image_of


class TestBlocks:
    def test_each_is_given_once(self) -> None:
        image = image_of(broker(1))
        records, first = allocate_producer_ids(image, 1, 100)
        assert first == ProducerIdBlock(0, BLOCK_SIZE)
        assert records == [(ProducerIdsRecord(broker_id=1, broker_epoch=100, next_producer_id=1000), 0)]
        image = after(image, records[0][0])
        assert allocate_producer_ids(image, 1, 100).reply == ProducerIdBlock(1000, BLOCK_SIZE)

    @pytest.mark.parametrize(
        ("broker_id", "epoch", "code"),
        [(2, 100, ErrorCode.STALE_BROKER_EPOCH), (1, 99, ErrorCode.STALE_BROKER_EPOCH)],
    )
    def test_only_for_registered_brokers(self, broker_id: int, epoch: int, code: ErrorCode) -> None:
        with pytest.raises(KafkaError) as raised:
            allocate_producer_ids(image_of(broker(1)), broker_id, epoch)
        assert raised.value.code is code

    def test_they_end(self) -> None:
        image = image_of(broker(1), ProducerIdsRecord(next_producer_id=2**63 - 1 - BLOCK_SIZE))
        image = after(image, *[record for record, _ in allocate_producer_ids(image, 1, 100).records])
        with pytest.raises(KafkaError) as raised:
            allocate_producer_ids(image, 1, 100)
        assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


class SlowController(Services):
    """Stands in for services and the channel: allocates what was asked for when it is told to."""

    node_id = 1

    def __init__(self) -> None:
        self.metadata = MetadataFeed(image_of(broker(1)))
        self.channel = cast(ControllerChannel, self)
        self.refuse = False
        self.submitted: list[tuple[AllocateProducerIdsRequest, Done]] = []

    def submit(self, request: AllocateProducerIdsRequest, done: Done, *, timeout_seconds: float) -> None:
        self.submitted.append((request, done))

    def commit(self) -> None:
        submitted, self.submitted = self.submitted, []
        for request, done in submitted:
            if self.refuse:
                done(AllocateProducerIdsResponse(error_code=ErrorCode.KAFKA_STORAGE_ERROR))
            else:
                records, block = allocate_producer_ids(self.image, request.broker_id, request.broker_epoch)
                self.metadata.image = after(self.image, *[record for record, _ in records])
                done(AllocateProducerIdsResponse(producer_id_start=block.first, producer_id_len=block.size))


@pytest.fixture
def controller() -> SlowController:
    return SlowController()


@pytest.fixture
def ids(controller: SlowController) -> ProducerIds:
    return ProducerIds(controller)


class TestHandingOut:
    def test_the_first_one_waits_for_a_block(self, ids: ProducerIds, controller: SlowController) -> None:
        given: list[int | KafkaError] = []
        assert ids.take() is None
        ids.request(given.append)
        ids.request(given.append)
        assert given == []
        assert len(controller.submitted) == 1
        controller.commit()
        assert given == [0, 1]
        assert ids.take() == 2

    def test_the_next_block_is_fetched_before_this_one_ends(
        self, ids: ProducerIds, controller: SlowController
    ) -> None:
        ids.request(lambda _: None)
        controller.commit()
        taken = [ids.take() for _ in range(BLOCK_SIZE - PREFETCH_BELOW - 1)]
        assert controller.submitted == []
        taken.append(ids.take())
        assert len(controller.submitted) == 1
        controller.commit()
        taken += [ids.take() for _ in range(BLOCK_SIZE)]
        assert taken == list(range(1, 2 * BLOCK_SIZE - PREFETCH_BELOW + 1))

    def test_who_asks_first_is_served_first(self, ids: ProducerIds, controller: SlowController) -> None:
        given: list[tuple[str, int | KafkaError]] = []
        ids.request(lambda outcome: given.append(("a", outcome)))
        controller.commit()
        while ids.take() != BLOCK_SIZE - 1:
            pass
        ids.request(lambda outcome: given.append(("b", outcome)))
        ids.request(lambda outcome: given.append(("c", outcome)))
        controller.commit()
        assert given == [("a", 0), ("b", BLOCK_SIZE), ("c", BLOCK_SIZE + 1)]

    def test_a_refusal_is_passed_on_and_not_for_ever(
        self, ids: ProducerIds, controller: SlowController
    ) -> None:
        given: list[int | KafkaError] = []
        ids.request(given.append)
        controller.refuse = True
        controller.commit()
        assert [getattr(outcome, "code", None) for outcome in given] == [ErrorCode.KAFKA_STORAGE_ERROR]
        controller.refuse = False
        ids.request(given.append)
        controller.commit()
        assert given[1:] == [0]

    def test_before_the_broker_is_registered_clients_try_again(
        self, ids: ProducerIds, controller: SlowController
    ) -> None:
        controller.metadata.image = image_of()
        given: list[int | KafkaError] = []
        ids.request(given.append)
        assert isinstance(given[0], KafkaError)
        assert given[0].code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
