"""What the machine decides, where the oracle's conversations do not reach: time, crashes, used-up epochs."""

import pytest

from broker.coordination.decision import StoredRecord
from broker.transactions.machine import CODEC
from broker.transactions.requests import Identified, Identity
from broker.transactions.settings import TransactionSettings
from broker.transactions.states import NEXT, TransactionState
from broker.transactions.transaction import (
    EPOCH_MAX,
    LAST_CLIENT_EPOCH,
    NO_TIMEOUT_MS,
    Transaction,
    created,
    read,
    stored,
)
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError, KafkaError
from protocol.records.builder import build_batch
from protocol.stored.transaction_records import TransactionLogKey, TransactionLogValue
from tests.broker.coordination.fake_log import FakeLog
from tests.broker.transactions.desk import (
    ABORT,
    COMMIT,
    COORDINATOR_EPOCH,
    PLACE,
    START_MS,
    TIMEOUT_MS,
    Desk,
)

CHECK_MS = TransactionSettings().timeout_check_interval_ms


@pytest.fixture
def desk() -> Desk:
    return Desk()


def with_epoch(epoch: int, state: TransactionState = TransactionState.EMPTY, *, version: int = 0) -> Desk:
    """A coordinator that knows the id x with the producer id 500, in this epoch."""
    transaction = created("x", 500, epoch, TIMEOUT_MS, START_MS)._replace(state=state, version=version)
    if state is not TransactionState.EMPTY:
        transaction = transaction._replace(start_ms=START_MS)
    if state in (TransactionState.ONGOING, TransactionState.PREPARE_ABORT, TransactionState.PREPARE_COMMIT):
        transaction = transaction._replace(partitions={PLACE: None})
    return Desk(log_of(transaction))


def log_of(transaction: Transaction) -> FakeLog:
    log = FakeLog()
    key = TransactionLogKey(transactional_id=transaction.transactional_id)
    encoded = CODEC.encode(StoredRecord(key, stored(transaction, 1), 1))
    log.append(build_batch([(START_MS, *encoded, ())]))
    return log


# Records


@pytest.mark.parametrize("value_version", [0, 1])
def test_a_record_gives_back_what_it_was_made_of(value_version: int) -> None:
    transaction = Transaction(
        "x",
        9,
        8,
        10,
        5,
        TIMEOUT_MS,
        TransactionState.PREPARE_COMMIT,
        {("t", 3): None, ("u", 0): None},
        1,
        2,
        2,
    )
    if value_version == 0:
        transaction = transaction._replace(previous_producer_id=-1, next_producer_id=-1, version=0)
    key = TransactionLogKey(transactional_id="x")
    encoded = CODEC.encode(StoredRecord(key, stored(transaction, value_version), value_version))
    decoded = CODEC.decode(*encoded)
    assert decoded is not None
    assert isinstance(decoded.value, TransactionLogValue)
    assert read("x", decoded.value) == transaction


def test_an_empty_transaction_has_null_for_its_partitions(desk: Desk) -> None:
    """As Kafka writes it."""
    desk.begin()
    (record,) = desk.log.records()
    decoded = CODEC.decode(record.key, record.value)
    assert decoded is not None
    assert isinstance(decoded.value, TransactionLogValue)
    assert decoded.value.transaction_partitions is None
    assert decoded.version == 1


def test_before_flexible_records_version_0_is_written() -> None:
    desk = Desk(feature_level=0)
    desk.add(desk.begin(), PLACE)
    for record in desk.log.records():
        assert record.value is not None
        assert record.value[:2] == b"\x00\x00"
    assert desk.replayed().transactions == desk.machine.transactions


def test_a_new_producer_in_an_old_cluster() -> None:
    desk = Desk(feature_level=0)
    identity = desk.begin()
    desk.add(identity, PLACE, version=2)
    assert desk.end(identity, COMMIT, version=2).producer_epoch == 1
    assert desk.crash().due == desk.due
    desk.write_markers()
    assert desk.known().state is TransactionState.COMPLETE_COMMIT


def test_a_state_that_does_not_exist_is_damage(desk: Desk) -> None:
    record = StoredRecord(
        TransactionLogKey(transactional_id="x"), TransactionLogValue(transaction_status=8), 1
    )
    with pytest.raises(DecodeError, match="transactional id x"):
        desk.new_machine().apply(record, 0, -1)


def test_illegal_transitions_are_refused() -> None:
    for state in TransactionState:
        transaction = created("x", 1, 0, TIMEOUT_MS, 0)._replace(state=state)
        for following in TransactionState:
            if following in NEXT[state]:
                assert transaction.become(following, 5).state is following
            else:
                with pytest.raises(ValueError, match="cannot become"):
                    transaction.become(following, 5)


# Records that cannot be written


def test_nothing_changes_if_a_record_cannot_be_written(desk: Desk) -> None:
    identity = desk.begin()
    desk.add(identity, PLACE)
    before = desk.known()
    desk.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    refused = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (
        desk.ask(
            lambda machine, now, ticket: machine.add_partitions("x", identity, [("t", 1)], 0, ticket, now)
        ).outcome
        is refused
    )
    assert desk.end(identity, COMMIT) is refused
    assert desk.end(identity, COMMIT, version=2) is refused
    assert desk.initialize() is refused
    assert desk.known() == before
    assert not desk.due
    desk.log.refusal = None
    assert desk.end(identity, COMMIT).error is ErrorCode.NONE
    assert desk.known().producer_epoch == 0


def test_markers_wait_until_the_decision_is_safe(desk: Desk) -> None:
    identity = desk.begin()
    desk.add(identity, PLACE)
    desk.log.follows = False
    ended = desk.start_ending(identity, COMMIT)
    assert not desk.due
    assert not ended.is_settled
    desk.log.cover(desk.log.log_end)
    assert len(desk.due) == 1
    assert ended.outcome.error is ErrorCode.NONE


def test_markers_are_due_even_if_the_answer_came_too_late(desk: Desk) -> None:
    identity = desk.begin()
    desk.add(identity, PLACE)
    desk.log.follows = False
    ended = desk.start_ending(identity, COMMIT)
    desk.let_pass(6000)
    assert ended.outcome is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not desk.due
    desk.log.cover(desk.log.log_end)
    assert len(desk.due) == 1


# After a crash


@pytest.mark.parametrize("is_commit", [COMMIT, ABORT])
@pytest.mark.parametrize("version", [1, 2])
def test_a_decision_is_carried_out_after_a_crash(desk: Desk, is_commit: bool, version: int) -> None:
    identity = desk.begin()
    desk.add(identity, PLACE, ("u", 3))
    desk.end(identity, is_commit, version=version)
    (before,) = desk.due
    after = desk.crash()
    assert list(after.due) == [before]
    assert before.is_commit is is_commit
    assert before.coordinator_epoch == COORDINATOR_EPOCH
    assert before.partitions == (PLACE, ("u", 3))
    assert before.identity == Identity(identity.producer_id, version - 1)
    after.write_markers()
    expected = TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
    assert after.known().state is expected
    assert not after.crash().due


def test_an_open_transaction_goes_on_after_a_crash(desk: Desk) -> None:
    identity = desk.begin()
    desk.add(identity, PLACE)
    after = desk.crash()
    assert after.machine.transactions == desk.machine.transactions
    assert after.add(identity, ("t", 1)) is ErrorCode.NONE
    assert after.end(identity, COMMIT).error is ErrorCode.NONE


def test_markers_of_another_decision_end_nothing(desk: Desk) -> None:
    identity = desk.begin()
    desk.add(identity, PLACE)
    desk.end(identity, COMMIT)
    (due,) = desk.due
    for wrong in (
        due._replace(is_commit=False),
        due._replace(identity=Identity(identity.producer_id, 5)),
        due._replace(coordinator_epoch=COORDINATOR_EPOCH - 1),
        due._replace(transactional_id="unknown"),
    ):
        assert desk.markers_written(wrong) is ErrorCode.INVALID_TXN_STATE
    assert desk.known().state is TransactionState.PREPARE_COMMIT
    desk.write_markers()
    assert desk.markers_written(due) is ErrorCode.INVALID_TXN_STATE


# Epochs that are used up


def test_the_last_epoch_of_a_producer_id() -> None:
    desk = with_epoch(LAST_CLIENT_EPOCH - 1)
    assert desk.initialize() == Identified(ErrorCode.NONE, 500, LAST_CLIENT_EPOCH)
    assert desk.initialize() == Identified(ErrorCode.NONE, 0, 0)
    assert desk.known().previous_producer_id == 500


def test_going_on_from_the_last_epoch_and_once_more() -> None:
    desk = with_epoch(LAST_CLIENT_EPOCH)
    assert desk.initialize((500, LAST_CLIENT_EPOCH)) == Identified(ErrorCode.NONE, 0, 0)
    assert desk.initialize((500, LAST_CLIENT_EPOCH)) == Identified(ErrorCode.NONE, 0, 0)
    assert desk.initialize((0, 0)) == Identified(ErrorCode.NONE, 0, 1)
    assert desk.initialize((500, LAST_CLIENT_EPOCH)).error is ErrorCode.PRODUCER_FENCED


def test_an_epoch_before_the_last_is_fenced() -> None:
    desk = with_epoch(LAST_CLIENT_EPOCH)
    assert desk.initialize((500, LAST_CLIENT_EPOCH - 7)).error is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("is_commit", [COMMIT, ABORT])
def test_ending_in_the_last_epoch_gives_another_producer_id(is_commit: bool) -> None:
    desk = with_epoch(LAST_CLIENT_EPOCH, TransactionState.ONGOING)
    identity = Identity(500, LAST_CLIENT_EPOCH)
    assert desk.end(identity, is_commit, version=2) == Identified(ErrorCode.NONE, 0, 0)
    (due,) = desk.due
    assert due.identity == Identity(500, EPOCH_MAX)
    assert desk.crash().due == desk.due
    desk.write_markers()
    assert (desk.known().producer_id, desk.known().producer_epoch) == (0, 0)
    assert desk.end(identity, is_commit, version=2) == Identified(ErrorCode.NONE, 0, 0)
    assert desk.end(identity, not is_commit, version=2).error is ErrorCode.INVALID_TXN_STATE
    assert desk.add(Identity(0, 0), PLACE) is ErrorCode.NONE


@pytest.mark.parametrize("feature_level", [0, 2])
def test_a_producer_in_its_last_epoch_can_be_fenced(feature_level: int) -> None:
    desk = with_epoch(LAST_CLIENT_EPOCH, TransactionState.ONGOING)
    desk.feature_level = feature_level
    assert desk.initialize().error is ErrorCode.CONCURRENT_TRANSACTIONS
    (due,) = desk.write_markers()
    assert due.identity == Identity(500, EPOCH_MAX)
    # If ends give epochs, this one gives the next producer id, too.
    assert desk.initialize() == Identified(ErrorCode.NONE, 0, 1 if feature_level >= 2 else 0)


def test_whoever_is_fenced_in_the_last_epoch_goes_on_with_the_next_producer_id() -> None:
    """No client may get the epoch behind the last: nothing could fence it, nor end what it does."""
    desk = with_epoch(LAST_CLIENT_EPOCH, TransactionState.ONGOING)
    identity = (500, LAST_CLIENT_EPOCH)
    assert desk.initialize(identity).error is ErrorCode.CONCURRENT_TRANSACTIONS
    desk.write_markers()
    assert (desk.known().producer_id, desk.known().producer_epoch) == (0, 0)
    assert desk.initialize(identity) == Identified(ErrorCode.NONE, 0, 0)


def test_time_that_runs_out_in_the_last_epoch_waits_for_a_producer_id() -> None:
    desk = with_epoch(LAST_CLIENT_EPOCH, TransactionState.ONGOING)
    desk.are_ids_at_hand = False
    desk.let_pass(TIMEOUT_MS + 2 * CHECK_MS)
    assert desk.known().state is TransactionState.ONGOING
    desk.are_ids_at_hand = True
    desk.let_pass(CHECK_MS)
    desk.write_markers()
    assert (desk.known().producer_id, desk.known().producer_epoch) == (0, 0)


def test_an_epoch_that_no_client_should_have_can_only_be_aborted() -> None:
    """As a coordinator of before may have left it."""
    for feature_level in (0, 2):
        desk = with_epoch(EPOCH_MAX, TransactionState.ONGOING)
        desk.feature_level = feature_level
        desk.let_pass(TIMEOUT_MS + 2 * CHECK_MS)
        (due,) = desk.write_markers()
        assert due.identity == Identity(500, EPOCH_MAX)
        assert desk.known().state is TransactionState.COMPLETE_ABORT
    desk = with_epoch(EPOCH_MAX, TransactionState.ONGOING)
    identity = Identity(500, EPOCH_MAX)
    assert desk.end(identity, COMMIT, version=2).error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert desk.end(identity, ABORT, version=2) == Identified(ErrorCode.NONE, 0, 0)


# Going on (KIP-360)


def test_a_lost_answer_is_not_told_again_after_a_crash(desk: Desk) -> None:
    """As in Kafka: the epoch before is not stored."""
    identity = desk.begin()
    assert desk.initialize(identity).producer_epoch == 1
    assert desk.initialize(identity).producer_epoch == 1
    assert desk.crash().initialize(identity).error is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("feature_level", [1, 2])
def test_one_whose_time_ran_out_may_go_on_if_ends_give_epochs(feature_level: int) -> None:
    desk = Desk(feature_level=feature_level)
    identity = desk.begin()
    desk.add(identity, PLACE)
    desk.let_pass(TIMEOUT_MS + 2 * CHECK_MS)
    desk.write_markers()
    assert desk.known().producer_epoch == 1
    went_on = desk.initialize(identity)
    if feature_level >= 2:
        assert went_on == Identified(ErrorCode.NONE, identity.producer_id, 1)
    else:
        assert went_on.error is ErrorCode.PRODUCER_FENCED


# Time


def test_a_transaction_is_aborted_when_its_time_is_over(desk: Desk) -> None:
    identity = desk.begin()
    desk.add(identity, PLACE)
    desk.let_pass(TIMEOUT_MS)
    assert not desk.due
    desk.let_pass(CHECK_MS)
    (due,) = desk.write_markers()
    assert due.is_commit is False
    assert due.identity == Identity(identity.producer_id, 1)
    assert desk.known().state is TransactionState.COMPLETE_ABORT
    assert desk.end(identity, COMMIT).error is ErrorCode.PRODUCER_FENCED
    assert desk.add(identity, PLACE) is ErrorCode.PRODUCER_FENCED


def test_time_runs_from_the_first_partition_not_the_last(desk: Desk) -> None:
    identity = desk.begin()
    desk.let_pass(TIMEOUT_MS * 3)
    desk.add(identity, PLACE)
    desk.let_pass(TIMEOUT_MS - CHECK_MS)
    desk.add(identity, ("t", 1))
    assert not desk.due
    desk.let_pass(2 * CHECK_MS)
    assert len(desk.due) == 1


def test_time_goes_on_while_the_broker_is_down(desk: Desk) -> None:
    identity = desk.begin()
    desk.add(identity, PLACE)
    desk.elapsed_ms += TIMEOUT_MS * 2
    after = desk.crash()
    after.let_pass(CHECK_MS)
    assert len(after.due) == 1


def test_what_is_not_open_costs_no_time(desk: Desk) -> None:
    assert desk.shard.deadline_ms() is None
    identity = desk.begin()
    at_rest_ms = desk.shard.deadline_ms()
    assert at_rest_ms == desk.settings.expiration_check_interval_ms
    desk.add(identity, PLACE)
    open_ms = desk.shard.deadline_ms()
    assert open_ms is not None
    assert open_ms <= CHECK_MS
    desk.end(identity, COMMIT)
    desk.write_markers()
    assert desk.shard.deadline_ms() == at_rest_ms


def test_a_two_phase_commit_has_all_the_time(desk: Desk) -> None:
    identity = desk.begin(timeout_ms=NO_TIMEOUT_MS)
    desk.add(identity, PLACE)
    desk.let_pass(30 * 24 * 3_600_000)
    assert desk.known().state is TransactionState.ONGOING


def test_many_run_out_at_once(desk: Desk) -> None:
    for number in range(50):
        name = f"x{number}"
        desk.add(desk.begin(transactional_id=name), PLACE, transactional_id=name)
    desk.let_pass(TIMEOUT_MS + CHECK_MS + 1)
    assert len(desk.due) == 50


@pytest.mark.parametrize("end", [None, COMMIT, ABORT])
def test_an_id_that_nobody_uses_expires(desk: Desk, end: bool | None) -> None:
    identity = desk.begin()
    if end is not None:
        desk.add(identity, PLACE)
        desk.end(identity, end)
        desk.write_markers()
    desk.let_pass(desk.settings.expiration_ms - desk.settings.expiration_check_interval_ms)
    assert "x" in desk.machine.transactions
    desk.let_pass(2 * desk.settings.expiration_check_interval_ms)
    assert desk.machine.transactions == {}
    assert desk.crash().machine.transactions == {}
    assert desk.describe().error is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert desk.add(identity, PLACE) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert desk.initialize(identity) == Identified(ErrorCode.NONE, 1, 0)


def test_an_open_transaction_does_not_expire(desk: Desk) -> None:
    identity = desk.begin(timeout_ms=NO_TIMEOUT_MS)
    desk.add(identity, PLACE)
    desk.let_pass(3 * desk.settings.expiration_ms)
    desk.end(identity, COMMIT)
    desk.let_pass(3 * desk.settings.expiration_ms)
    assert desk.known().state is TransactionState.PREPARE_COMMIT


def test_many_expire_in_batches(desk: Desk) -> None:
    for number in range(250):
        desk.begin(transactional_id=f"x{number}")
    batches = len(desk.log.batches)
    desk.let_pass(desk.settings.expiration_ms + 2 * desk.settings.expiration_check_interval_ms)
    assert desk.machine.transactions == {}
    assert len(desk.log.batches) == batches + 3
