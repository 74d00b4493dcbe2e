"""StreamsGroupHeartbeat: how members join, get tasks, give them up, and go (KIP-1071)."""

import pytest

from broker.groups.settings import GroupSettings
from broker.groups.streams.group import StreamsGroupState
from broker.groups.streams.member import StreamsMemberState
from broker.groups.streams.statuses import StreamsStatus
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse, TaskIds
from tests.broker.groups.streams.streams_room import (
    DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    StreamsRoom,
    counting,
    reading,
    told,
)


def at_once(room: StreamsRoom) -> StreamsRoom:
    """Every change brings about a new assignment at once."""
    room.configure("streams.initial.rebalance.delay.ms", "0")
    room.configure("streams.assignment.interval.ms", "0")
    return room


@pytest.fixture
def room() -> StreamsRoom:
    room = at_once(StreamsRoom())
    room.create_topic("t", 4)
    return room


def statuses(response: StreamsGroupHeartbeatResponse) -> list[StreamsStatus]:
    return [StreamsStatus(status.status_code) for status in response.status or ()]


def test_the_first_member_gets_everything(room: StreamsRoom) -> None:
    response = room.enrolled("a")
    assert response.member_epoch == 2
    assert told(response.active_tasks) == {"0": [0, 1, 2, 3]}
    assert (told(response.standby_tasks), told(response.warmup_tasks)) == ({}, {})
    assert response.status == []
    assert room.app.state is StreamsGroupState.STABLE


def test_a_new_group_waits_for_more_members() -> None:
    room = StreamsRoom()
    room.create_topic("t", 4)
    response = room.enrolled("a")
    assert (response.member_epoch, told(response.active_tasks)) == (1, {})
    assert statuses(response) == [StreamsStatus.ASSIGNMENT_DELAYED]
    room.pass_ms(DELAY_MS - 1)
    assert statuses(room.enrolled("b")) == [StreamsStatus.ASSIGNMENT_DELAYED]
    assert room.app.targets == {}
    room.pass_ms(1)
    assert (room.app.group_epoch, room.app.target_epoch) == (3, 3)
    given = [told(room.work(member_id).active_tasks) or {} for member_id in ("a", "b")]
    assert [len(tasks["0"]) for tasks in given] == [2, 2]
    assert sorted(given[0]["0"] + given[1]["0"]) == [0, 1, 2, 3]


@pytest.mark.acts("streams.initial.rebalance.delay.ms")
def test_how_long_a_new_group_waits_is_its_own_affair() -> None:
    room = StreamsRoom()
    room.configure("streams.initial.rebalance.delay.ms", "9000")
    room.create_topic("t", 4)
    room.enrolled("a")
    room.pass_ms(8999)
    assert statuses(room.work("a")) == [StreamsStatus.ASSIGNMENT_DELAYED]
    assert room.app.target_epoch < room.app.group_epoch
    room.pass_ms(1)
    assert room.app.target_epoch == room.app.group_epoch


async def test_a_broker_that_has_loaded_a_group_does_not_wait_again() -> None:
    room = StreamsRoom()
    room.create_topic("t", 4)
    room.enrolled("a")
    room = await room.restarted()
    assert told(room.work("a").active_tasks) == {"0": [0, 1, 2, 3]}


@pytest.mark.acts("streams.assignment.interval.ms")
def test_an_assignment_waits_for_its_interval(room: StreamsRoom) -> None:
    room.configure("streams.assignment.interval.ms", "1000")
    room.enrolled("a")
    response = room.enrolled("b")
    assert statuses(response) == [StreamsStatus.ASSIGNMENT_DELAYED]
    assert (room.app.group_epoch, room.app.target_epoch) == (3, 2)
    room.pass_ms(1000)
    assert room.work("b").status == []
    assert room.app.target_epoch == 3


def test_tasks_go_over_once_they_are_given_up(room: StreamsRoom) -> None:
    room.enrolled("a")
    assert told(room.enrolled("b").active_tasks) == {}
    assert room.worker("b").state is StreamsMemberState.UNRELEASED_TASKS
    gives = room.report("a", 2, owned={"0": [0, 1, 2, 3]})
    assert (gives.member_epoch, told(gives.active_tasks)) == (2, {"0": [0, 1]})
    assert room.worker("a").state is StreamsMemberState.UNREVOKED_TASKS
    assert told(room.work("b").active_tasks) is None, "they are not free yet"
    assert room.report("a", 2, owned={"0": [0, 1]}).member_epoch == 3
    assert told(room.work("b").active_tasks) == {"0": [2, 3]}
    assert room.app.state is StreamsGroupState.STABLE


def test_a_member_that_does_not_give_up_is_dropped(room: StreamsRoom) -> None:
    room.enrolled("a")
    room.enrolled("b")
    room.report("a", 2, owned={"0": [0, 1, 2, 3]})
    for _ in range(REBALANCE_MS // 20_000):
        room.pass_ms(20_000)
        room.report("a", 2, owned={"0": [0, 1, 2, 3]})
        if "b" in room.app.members:
            room.work("b")
    assert set(room.app.members) == {"b"}
    assert room.active("b") == {"0": [0, 1, 2, 3]}


def test_a_silent_member_is_dropped(room: StreamsRoom) -> None:
    room.enrolled("a")
    room.pass_ms(SESSION_MS - 1)
    assert "a" in room.app.members
    room.pass_ms(1)
    assert room.app.state is StreamsGroupState.EMPTY
    assert (room.app.group_epoch, room.app.target_epoch) == (3, 3)


def test_a_lost_answer_is_no_reason_to_begin_anew(room: StreamsRoom) -> None:
    room.enrolled("a")
    room.enrolled("b")
    room.report("a", 2, owned={"0": [0, 1, 2, 3]})
    room.report("a", 2, owned={"0": [0, 1]})
    assert room.worker("a").member_epoch == 3
    assert room.report("a", 2, owned={"0": [0]}).error_code == ErrorCode.NONE
    for wrong in (
        room.report("a", 2, owned={"0": [0, 2]}),  # it has what it lost
        room.report("a", 2),  # it does not say
        room.report("a", 1, owned={}),
    ):
        assert wrong.error_code == ErrorCode.FENCED_MEMBER_EPOCH
        assert "smaller member epoch" in str(wrong.error_message)
    ahead = room.report("a", 4, owned={})
    assert (ahead.error_code, ahead.member_id) == (ErrorCode.FENCED_MEMBER_EPOCH, "")
    assert "greater member epoch (4)" in str(ahead.error_message)


def test_topics_that_are_missing_are_waited_for(room: StreamsRoom) -> None:
    response = room.enrolled("a", reading("u"))
    assert statuses(response) == [StreamsStatus.MISSING_SOURCE_TOPICS]
    assert (response.member_epoch, told(response.active_tasks)) == (2, {})
    assert room.app.state is StreamsGroupState.NOT_READY
    assert room.list_groups(["not_ready"]) == ["group"]
    assert room.list_groups(["notready"]) == []
    room.create_topic("u", 2)
    response = room.work("a")
    assert (response.member_epoch, told(response.active_tasks)) == (3, {"0": [0, 1]})
    room.add_partitions("u", 1)
    assert told(room.work("a").active_tasks) == {"0": [0, 1, 2]}
    room.delete_topic("u")
    response = room.work("a")
    assert (response.member_epoch, told(response.active_tasks)) == (4, {})
    assert statuses(response) == [StreamsStatus.MISSING_SOURCE_TOPICS]


def test_internal_topics_are_asked_for_and_then_used(room: StreamsRoom) -> None:
    beaten = room.report_later("a", 0, topology=counting("t"), owned={}, process_id="p", rebalance_ms=1000)
    assert {topic.name: topic.partition_count for topic in beaten.outcome.missing_topics.values()} == {
        "t-by-word": 4,
        "t-seen-log": 4,
        "t-counts-log": 4,
    }
    assert statuses(beaten.outcome.response) == [StreamsStatus.MISSING_INTERNAL_TOPICS]
    room.make_missing_topics(beaten.outcome)
    response = room.work("a")
    assert response.status == []
    assert told(response.active_tasks) == {"0": [0, 1, 2, 3], "1": [0, 1, 2, 3]}
    described = room.describe_app().topology
    assert described is not None
    assert described.subtopologies is not None
    assert described.subtopologies[1].repartition_source_topics[0].partitions == 4


def test_the_first_member_s_topology_is_everybody_s(room: StreamsRoom) -> None:
    room.enrolled("a", reading("t", epoch=1))
    stale = room.enrolled("b", reading("t", epoch=0))
    assert statuses(stale) == [StreamsStatus.STALE_TOPOLOGY]
    assert [status.status_detail for status in stale.status or ()] == [
        "The member's topology epoch 0 is behind the group's topology epoch 1."
    ]
    for other in (reading("t", epoch=2), reading("u", epoch=1)):
        refused = room.enrol("c", other)
        assert (refused.error_code, refused.error_message) == (
            ErrorCode.INVALID_REQUEST,
            "Topology updates are not supported yet.",
        )


def test_tasks_that_nobody_can_have_are_refused(room: StreamsRoom) -> None:
    room.enrolled("a")
    for owned, why in (
        ({"0": [4]}, "Task 4 for subtopology 0 is invalid. Number of tasks for this subtopology: 4"),
        ({"1": [0]}, "Subtopology 1 does not exist in the topology."),
    ):
        refused = room.report("a", 2, owned=owned)
        assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_REQUEST, why)


@pytest.mark.acts("streams.num.standby.replicas")
def test_copies_are_kept_in_other_processes(room: StreamsRoom) -> None:
    for name in ("t-by-word", "t-seen-log", "t-counts-log"):
        room.create_topic(name, 4)
    room.configure("streams.num.standby.replicas", "1")
    room.enrolled("a", counting("t"), process_id="one")
    room.enrolled("b", counting("t"), process_id="one")
    room.settle_workers("a", "b")
    assert not room.worker("a").assigned.standby
    assert not room.worker("b").assigned.standby
    room.enrolled("c", counting("t"), process_id="two")
    room.settle_workers("a", "b", "c")
    for member_id in ("a", "b"):
        for name, partitions in room.worker(member_id).assigned.active.items():
            assert set(partitions) <= set(room.worker("c").assigned.standby.get(name, ()))
    epoch = room.app.group_epoch
    room.configure("streams.num.standby.replicas", "0")
    room.settle_workers("a", "b", "c")
    assert room.app.group_epoch == epoch + 1
    assert not room.worker("c").assigned.standby


def test_an_assignor_that_is_not_here_is_the_default_one(room: StreamsRoom) -> None:
    room.configure("streams.assignor.name", "of another broker")
    room.enrolled("a")
    assert room.active("a") == {"0": [0, 1, 2, 3]}
    assert room.describe_app().assignor_name == "sticky"


def test_a_member_that_names_a_subtopology_twice_has_given_up_nothing(room: StreamsRoom) -> None:
    room.enrolled("a")
    room.settle_workers("a")
    room.enrolled("b")
    room.pass_ms(1_000)
    room.work("a")
    room.work("b")
    member = room.worker("a")
    revoking, kept = sorted(member.revoking.active["0"]), sorted(member.assigned.active["0"])
    split = [TaskIds(subtopology_id="0", partitions=of) for of in (revoking, kept)]
    refused = room.report("a", member.member_epoch, owned=split)
    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert room.worker("a") == member
    room.work("b")
    assert room.active("b") == {}, "nobody else has it before that"
    room.settle_workers("a", "b")
    stays = room.worker("a")
    repeated = [TaskIds(subtopology_id="0", partitions=kept)] * 2
    assert room.report("a", stays.member_epoch, owned=repeated).error_code == ErrorCode.NONE


def test_what_members_report_is_shown(room: StreamsRoom) -> None:
    room.enrolled("a")
    room.work("a", offsets=[("0", 1, 5), ("0", 0, 7)])
    room.work("a")
    (member,) = room.describe_app().members
    assert [(of.partition, of.offset) for of in member.task_offsets] == [(0, 7), (1, 5)]
    refused = room.report("a", 2, offsets=[("0", 1, 5), ("0", 1, 6)])
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "Task offsets contain a duplicate entry for subtopology 0 and partition 1.",
    )


def test_one_member_can_stop_the_application(room: StreamsRoom) -> None:
    room.enrolled("a")
    room.enrolled("b")
    assert statuses(room.work("a", shutdown=True)) == [StreamsStatus.SHUTDOWN_APPLICATION]
    (status,) = room.work("b").status or []
    assert status.status_detail == (
        "Streams group member a encountered a fatal error and requested a shutdown for the entire "
        "application."
    )
    room.report("a", -1)
    assert statuses(room.work("b")) == [StreamsStatus.SHUTDOWN_APPLICATION]
    room.report("b", -1)
    assert room.enrolled("c").status == []


def test_members_learn_whom_to_ask(room: StreamsRoom) -> None:
    room.enrolled("a")
    first = room.enrolled("b", endpoint=("b-host", 7))
    assert first.endpoint_information_epoch == 1
    assert [told_of.user_endpoint.host for told_of in first.partitions_by_user_endpoint or ()] == ["b-host"]
    assert room.work("b", endpoint_epoch=1).partitions_by_user_endpoint is None
    gives = room.work("a", endpoint_epoch=0)
    assert [len(of.active_partitions) for of in gives.partitions_by_user_endpoint or ()] == [0]
    room.work("a", endpoint_epoch=1)
    gets = room.work("b", endpoint_epoch=1)
    assert gets.endpoint_information_epoch == 2
    assert gets.partitions_by_user_endpoint is not None
    (of_b,) = gets.partitions_by_user_endpoint
    assert [(of.topic, of.partitions) for of in of_b.active_partitions] == [("t", [2, 3])]


def test_a_static_member_finds_its_tasks_again(room: StreamsRoom) -> None:
    room.enrolled("a", instance_id="i")
    taken = room.enrol("b", instance_id="i")
    assert taken.error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert room.report("a", -2, instance_id="i").member_epoch == -2
    assert room.app.state is StreamsGroupState.RECONCILING
    heir = room.enrolled("b", instance_id="i", process_id="process of a")
    assert (heir.member_epoch, told(heir.active_tasks)) == (2, {"0": [0, 1, 2, 3]})
    assert set(room.app.members) == {"b"}
    assert room.report("a", 2, instance_id="i").error_code == ErrorCode.FENCED_INSTANCE_ID
    room.report("b", -2, instance_id="i")
    assert told(room.enrolled("b", instance_id="i", process_id="process of a").active_tasks) == {
        "0": [0, 1, 2, 3]
    }, "the one that was fenced has taken nothing away"


def test_a_static_member_in_another_process_costs_a_new_assignment(room: StreamsRoom) -> None:
    room.enrolled("a", instance_id="i")
    room.report("a", -2, instance_id="i")
    assert room.enrolled("b", instance_id="i").member_epoch == 3


@pytest.mark.acts("streams.rack.aware.assignment.tags")
def test_members_without_wanted_tags_are_told(room: StreamsRoom) -> None:
    room.configure("streams.rack.aware.assignment.tags", "zone,rack")
    response = room.enrolled("a", tags={"zone": "z"})
    assert statuses(response) == [StreamsStatus.MISSING_CLIENT_TAGS]
    assert "[rack]" in (response.status or [])[0].status_detail
    assert room.work("a", version=0).status == []
    assert room.app.assignment_settings == {
        "num.standby.replicas": "0",
        "rack.aware.assignment.tags": "zone,rack",
    }


def test_no_more_members_than_allowed() -> None:
    room = at_once(StreamsRoom(GroupSettings(streams_max_size=1)))
    room.create_topic("t", 1)
    room.enrolled("a", instance_id="i")
    refused = room.enrol("b")
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        "The streams group has reached its maximum capacity of 1 members.",
    )
    assert room.enrol("a", instance_id="j").error_code == ErrorCode.NONE
    room.report("a", -2, instance_id="i")


def test_strangers_are_turned_away(room: StreamsRoom) -> None:
    unknown = room.report("a", 1)
    assert (unknown.error_code, unknown.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Streams group group not found.",
    )
    assert room.report("a", -1).error_message == "Group group not found."
    room.enrolled("a")
    assert room.report("b", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert room.report("b", -1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert room.report("a", -2, instance_id="j").error_message == "Instance id j is unknown."
    room.entered("c", group_id="consumers")
    other = room.enrol("a", group_id="consumers")
    assert (other.error_code, other.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group consumers is not a streams group.",
    )


def test_what_somebody_told_who_could_not_join_is_forgotten(room: StreamsRoom) -> None:
    room.enrolled("a")
    room.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    refused = room.enrol("b", offsets=[("0", 0, 1)])
    room.log.refusal = None
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    for _ in range(3):
        room.pass_ms(SESSION_MS // 2)
        room.work("a")
    assert set(room.app.members) == {"a"}
    assert room.app.reports == {}
    assert len(room.app.deadlines) == 1


def test_a_static_member_that_comes_back_under_the_same_id_is_watched_again(room: StreamsRoom) -> None:
    room.enrolled("a", instance_id="i")
    room.report("a", -2, instance_id="i")
    room.enrolled("a", instance_id="i")
    room.pass_ms(SESSION_MS - 1)
    assert "a" in room.app.members
    room.pass_ms(1)
    assert room.app.members == {}


def test_who_could_not_be_written_off_is_so_later(room: StreamsRoom) -> None:
    room.enrolled("a")
    room.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    room.pass_ms(SESSION_MS + 3_000)
    assert "a" in room.app.members
    room.log.refusal = None
    room.pass_ms(500)
    assert room.app.members == {}
