"""Producer ids: blocks from the controller, single ids for producers."""

from collections.abc import Callable
from typing import cast

import pytest

from broker.controller.decision import Command
from broker.controller.producer_ids import BLOCK_SIZE, ProducerIdBlock, allocate_producer_ids
from broker.controller.service import ControllerService
from broker.metadata.producer_ids import PREFETCH_BELOW, ProducerIds
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
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
        [(2, 100, ErrorCode.BROKER_ID_NOT_REGISTERED), (1, 99, ErrorCode.STALE_BROKER_EPOCH)],
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


class SlowController:
    """Commits what was submitted when it is told to."""

    def __init__(self) -> None:
        self.image = image_of(broker(1))
        self.refuse = False
        self.submitted: list[
            tuple[Command[ProducerIdBlock], Callable[[ProducerIdBlock | KafkaError], None]]
        ] = []

    def submit(
        self, command: Command[ProducerIdBlock], done: Callable[[ProducerIdBlock | KafkaError], None]
    ) -> None:
        self.submitted.append((command, done))

    def commit(self) -> None:
        submitted, self.submitted = self.submitted, []
        for command, done in submitted:
            if self.refuse:
                done(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
            else:
                records, block = command(self.image)
                self.image = after(self.image, *[record for record, _ in records])
                done(block)


@pytest.fixture
def controller() -> SlowController:
    return SlowController()


@pytest.fixture
def ids(controller: SlowController) -> ProducerIds:
    return ProducerIds(cast(ControllerService, controller), 1)


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
        controller.image = image_of()
        given: list[int | KafkaError] = []
        ids.request(given.append)
        assert isinstance(given[0], KafkaError)
        assert given[0].code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
