"""The table of states, and what follows from it."""

from broker.transactions.states import AT_REST, BY_TITLE, ENDING, NEXT, TransactionState


def test_clients_see_kafka_s_names() -> None:
    assert sorted(BY_TITLE) == [
        "CompleteAbort",
        "CompleteCommit",
        "Dead",
        "Empty",
        "Ongoing",
        "PrepareAbort",
        "PrepareCommit",
        "PrepareEpochFence",
    ]
    assert [state.value for state in TransactionState] == list(range(8))


def test_every_state_has_its_line() -> None:
    assert NEXT.keys() == set(TransactionState)


def test_a_decision_is_for_good() -> None:
    assert NEXT[TransactionState.PREPARE_COMMIT] == {TransactionState.COMPLETE_COMMIT}
    assert NEXT[TransactionState.PREPARE_ABORT] == {TransactionState.COMPLETE_ABORT}


def test_what_is_never_stored_is_never_reached() -> None:
    reached = set().union(*NEXT.values())
    assert reached == set(TransactionState) - {
        TransactionState.DEAD,
        TransactionState.PREPARE_EPOCH_FENCE,
    }
    assert AT_REST | ENDING | {TransactionState.ONGOING} == reached
