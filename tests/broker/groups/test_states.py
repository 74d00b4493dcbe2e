from broker.groups.states import ANSWERS, NEXT, GroupState
from protocol.error_codes import ErrorCode


def test_every_state_is_in_both_tables() -> None:
    assert set(NEXT) == set(ANSWERS) == set(GroupState)


def test_every_state_can_be_reached_and_every_one_but_death_can_be_left() -> None:
    reached = {state for following in NEXT.values() for state in following}
    assert reached == set(GroupState)
    assert [state for state, following in NEXT.items() if not following] == [GroupState.DEAD]


def test_only_a_prepared_group_can_complete_and_only_a_completed_one_be_stable() -> None:
    def before(state: GroupState) -> set[GroupState]:
        return {earlier for earlier, following in NEXT.items() if state in following}

    assert before(GroupState.COMPLETING_REBALANCE) == {GroupState.PREPARING_REBALANCE}
    assert before(GroupState.STABLE) == {GroupState.COMPLETING_REBALANCE}
    assert before(GroupState.EMPTY) == {GroupState.PREPARING_REBALANCE}


def test_the_names_are_those_that_clients_know() -> None:
    names = {"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}
    assert {state.value for state in GroupState} == names


def test_only_groups_without_members_can_be_deleted() -> None:
    deletable = [state for state, answers in ANSWERS.items() if answers.delete_group is ErrorCode.NONE]
    assert deletable == [GroupState.EMPTY]
