"""The client's administrative calls do what they say, and are refused with Kafka's errors."""

from compat.scenarios.python.checks import expect, expect_subset, expect_that, refused
from compat.scenarios.python.client import Code, Committed, Found, Partition, Record, not_offered
from compat.scenarios.python.consuming import numbered, numbers
from compat.scenarios.python.offsets import run_until
from compat.scenarios.python.records import START_MS
from compat.scenarios.python.registry import plays
from compat.scenarios.python.stage import Stage, partitions_of, take, values, wait_for
from compat.scenarios.python.transactions import expect_fenced, reader

PRODUCE = 0
API_VERSIONS = 18


@plays("create-topic")
def create_a_topic(stage: Stage) -> None:
    topic = stage.topic(5, {"retention.ms": "12345", "cleanup.policy": "compact"})
    expect(stage.consumer().partitions_of(topic), {0, 1, 2, 3, 4}, "partitions")
    settings = stage.admin.describe_settings("topic", topic)
    expect(settings["retention.ms"], "12345", "retention.ms")
    expect(settings["cleanup.policy"], "compact", "cleanup.policy")


@plays("create-topic-refused")
def create_what_cannot_be(stage: Stage) -> None:
    topic, admin = stage.topic(), stage.admin
    with refused(Code.TOPIC_ALREADY_EXISTS, "a topic that is there"):
        admin.create_topic(topic)
    with refused(Code.INVALID_TOPIC_EXCEPTION, "a name with a blank"):
        admin.create_topic("not a name")
    with refused(Code.INVALID_PARTITIONS, "a topic without partitions"):
        admin.create_topic(stage.new_name("topic"), 0)
    with refused(Code.INVALID_REPLICATION_FACTOR, "more replicas than brokers"):
        admin.create_topic(stage.new_name("topic"), replication_factor=3)
    with refused(Code.INVALID_CONFIG, "a setting of a wrong kind"):
        admin.create_topic(stage.new_name("topic"), settings={"retention.ms": "soon"})


@plays("create-topic-validated")
def validate_a_topic(stage: Stage) -> None:
    name, present = stage.new_name("topic"), stage.topic()
    stage.admin.create_topic(name, 3, validate_only=True)
    with refused(Code.TOPIC_ALREADY_EXISTS, "a topic that is there"):
        stage.admin.create_topic(present, validate_only=True)
    expect_that(name not in stage.admin.list_topics(), "a topic that was only validated is there")


@plays("delete-topic")
def delete_a_topic(stage: Stage) -> None:
    topic = stage.topic(2)
    stage.send(topic, numbered(0, 5))
    stage.admin.delete_topic(topic)
    wait_for(lambda: topic not in stage.admin.list_topics(), "the topic is gone")
    with refused(Code.UNKNOWN_TOPIC_OR_PARTITION, "deleting it again"):
        stage.admin.delete_topic(topic)


@plays("add-partitions")
def add_partitions(stage: Stage) -> None:
    topic = stage.topic(2)
    stage.admin.create_partitions(topic, 5)
    stage.wait_until_served(topic, 5)
    expect(stage.consumer().partitions_of(topic), {0, 1, 2, 3, 4}, "partitions")
    with refused(Code.INVALID_PARTITIONS, "fewer partitions than there are"):
        stage.admin.create_partitions(topic, 3)
    (place,) = stage.send(topic, [Record(b"x", partition=4)])
    expect(place, (4, 0), "place of a record on a new partition")


@plays("topic-settings")
def describe_a_topic_s_settings(stage: Stage) -> None:
    topic = stage.topic(settings={"segment.ms": "777000"})
    settings = stage.admin.describe_settings("topic", topic)
    expect(settings["segment.ms"], "777000", "segment.ms")
    expect(settings["cleanup.policy"], "delete", "cleanup.policy")
    expect(settings["max.message.bytes"], "1048588", "max.message.bytes")


@plays("broker-settings")
def describe_a_broker_s_settings(stage: Stage) -> None:
    settings = stage.admin.describe_settings("broker", any_broker_id(stage))
    expect_subset(["log.retention.hours", "num.partitions", "advertised.listeners"], settings, "settings")
    expect(settings["log.retention.hours"], "168", "log.retention.hours")


def any_broker_id(stage: Stage) -> str:
    return str(stage.admin.describe_cluster().controller_id)


@plays("replace-settings")
def replace_a_topic_s_settings(stage: Stage) -> None:
    topic = stage.topic(settings={"retention.ms": "1000000", "segment.ms": "777000"})
    stage.admin.replace_settings(topic, {"retention.ms": "2000000"})
    wait_for_setting(stage, topic, "retention.ms", "2000000")
    wait_for_setting(stage, topic, "segment.ms", "604800000")
    with refused(Code.INVALID_CONFIG, "a setting of a wrong kind"):
        stage.admin.replace_settings(topic, {"retention.ms": "soon"})


@plays("change-settings")
def change_a_topic_s_settings(stage: Stage) -> None:
    topic = stage.topic(settings={"retention.ms": "1000000", "segment.ms": "777000"})
    stage.admin.change_settings(
        "topic",
        topic,
        put={"retention.ms": "2000000"},
        remove=["segment.ms"],
        append={"cleanup.policy": "compact"},
    )
    wait_for_setting(stage, topic, "retention.ms", "2000000")
    wait_for_setting(stage, topic, "segment.ms", "604800000")
    wait_for_setting(stage, topic, "cleanup.policy", "delete,compact")
    with refused(Code.INVALID_CONFIG, "a setting of a wrong kind"):
        stage.admin.change_settings("topic", topic, put={"retention.ms": "soon"})


@plays("change-broker-settings")
def change_a_broker_s_settings(stage: Stage) -> None:
    topic, broker_id = stage.topic(), any_broker_id(stage)
    stage.admin.change_settings("broker", broker_id, put={"log.index.interval.bytes": "5000"})
    wait_for_setting(stage, topic, "index.interval.bytes", "5000")
    stage.admin.change_settings("broker", broker_id, remove=["log.index.interval.bytes"])
    wait_for_setting(stage, topic, "index.interval.bytes", "4096")


def wait_for_setting(stage: Stage, topic: str, name: str, value: str) -> None:
    wait_for(lambda: stage.admin.describe_settings("topic", topic)[name] == value, f"{name} becomes {value}")


@plays("config-resources")
def list_what_has_settings(stage: Stage) -> None:
    topic = stage.topic()
    resources = stage.admin.list_config_resources()
    expect_subset([topic], resources["topic"], "topics with settings")
    expect_that(resources["broker"], "no broker has settings")


@plays("list-groups")
def list_groups(stage: Stage) -> None:
    topic, group = stage.topic(), stage.new_name("group")
    stage.send(topic, numbered(0, 1))
    run_until(stage, group, topic, 1)
    expect_subset([group], stage.admin.list_groups(), "groups")


@plays("describe-group")
def describe_a_group(stage: Stage) -> None:
    topic, group = stage.topic(2), stage.new_name("group")
    member = stage.member(group, [topic], instance_id=None)
    wait_for(lambda: len(member.owned) == 2, "the member has its partitions", member)
    described = stage.admin.describe_group(group)
    expect(described.state, "Stable", "state")
    if described.protocol is not None:
        expect(described.protocol, "range", "assignor")
    (only,) = described.members
    expect_that(only.member_id, "the member has no id")
    expect_that(only.client_id, "the member has no client id")
    expect(only.host, "/127.0.0.1", "host of the member")
    if only.assigned is not None:
        expect(only.assigned, set(partitions_of(topic, 2)), "partitions of the member")
    member.leave()
    wait_for(lambda: stage.admin.describe_group(group).state == "Empty", "the group is empty")


@plays("describe-new-group")
def describe_a_new_group(stage: Stage) -> None:
    topic, group = stage.topic(2), stage.new_name("group")
    member = stage.member(group, [topic], new_protocol=True)
    wait_for(lambda: len(member.owned) == 2, "the member has its partitions", member)
    described = stage.admin.describe_group(group)
    expect(described.state, "Stable", "state")
    expect(described.protocol, "uniform", "assignor")
    (only,) = described.members
    expect(only.host, "/127.0.0.1", "host of the member")
    expect(only.assigned, set(partitions_of(topic, 2)), "partitions of the member")
    member.leave()
    wait_for(lambda: stage.admin.describe_group(group).state == "Empty", "the group is empty")


@plays("group-kinds")
def tell_kinds_of_groups_apart(stage: Stage) -> None:
    topic, old, new, shared = stage.topic(), *(stage.new_name("group") for _ in range(3))
    sharing = stage.share_consumer(shared)
    sharing.subscribe([topic])
    members = [stage.member(old, [topic]), stage.member(new, [topic], new_protocol=True)]
    wait_for(lambda: all(member.owned for member in members), "the members have their partition", *members)
    kinds: dict[str, str] = {}

    def are_listed() -> bool:
        sharing.poll(0.1)
        kinds.update(stage.admin.list_group_kinds())
        return {old, new, shared} <= set(kinds)

    wait_for(are_listed, "the groups are listed", *members)
    expect([kinds[name] for name in (old, new, shared)], ["Classic", "Consumer", "Share"], "kinds")


@plays("group-settings")
def change_a_group_s_settings(stage: Stage) -> None:
    group, name = stage.new_name("group"), "consumer.heartbeat.interval.ms"
    stage.admin.change_settings("group", group, put={name: "6000"})
    wait_for(lambda: stage.admin.describe_settings("group", group)[name] == "6000", f"{name} becomes 6000")
    with refused(Code.INVALID_CONFIG, "a setting of a wrong kind"):
        stage.admin.change_settings("group", group, put={name: "soon"})
    stage.admin.change_settings("group", group, remove=[name])
    wait_for(
        lambda: stage.admin.describe_settings("group", group)[name] == "5000", f"{name} becomes 5000 again"
    )


@plays("delete-group")
def delete_a_group(stage: Stage) -> None:
    topic, group = stage.topic(), stage.new_name("group")
    stage.send(topic, numbered(0, 1))
    member = run_until(stage, group, topic, 1)
    member.ask(lambda consumer: consumer.commit())
    with refused(Code.NON_EMPTY_GROUP, "a group with a member"):
        stage.admin.delete_group(group)
    member.leave()
    stage.admin.delete_group(group)
    expect_that(group not in stage.admin.list_groups(), "a deleted group is listed")
    with refused(Code.GROUP_ID_NOT_FOUND, "a group that is not there"):
        stage.admin.delete_group(group)


@plays("remove-member")
def remove_a_static_member(stage: Stage) -> None:
    topic, group = stage.topic(), stage.new_name("group")
    stage.send(topic, numbered(0, 1))
    run_until(stage, group, topic, 1, instance_id="fixture").leave()
    (only,) = stage.admin.describe_group(group).members
    if only.instance_id is not None:
        expect(only.instance_id, "fixture", "instance id")
    stage.admin.remove_member(group, "fixture")
    expect(stage.admin.describe_group(group).members, [], "members after the removal")


@plays("group-offsets")
def list_a_group_s_offsets(stage: Stage) -> None:
    topic, group = stage.topic(2), stage.new_name("group")
    first, second = partitions_of(topic, 2)
    commit_unjoined(stage, group, {first: Committed(3, "note"), second: Committed(0)})
    expect(stage.admin.group_offsets(group), {first: Committed(3, "note"), second: Committed(0)}, "offsets")


@plays("alter-group-offsets")
def alter_a_group_s_offsets(stage: Stage) -> None:
    topic, group = stage.topic(), stage.new_name("group")
    partition = Partition(topic, 0)
    stage.send(topic, numbered(0, 10))
    commit_unjoined(stage, group, {partition: Committed(3)})
    stage.admin.alter_group_offsets(group, {partition: 8})
    expect(stage.admin.group_offsets(group)[partition].offset, 8, "committed offset")
    member = run_until(stage, group, topic, 2)
    expect([record.place.offset for record in member.taken], [8, 9], "offsets of the group's records")


@plays("delete-group-offsets")
def delete_a_group_s_offsets(stage: Stage) -> None:
    topic, group = stage.topic(2), stage.new_name("group")
    first, second = partitions_of(topic, 2)
    commit_unjoined(stage, group, {first: Committed(3), second: Committed(4)})
    stage.admin.delete_group_offsets(group, [first])
    expect(stage.admin.group_offsets(group), {second: Committed(4)}, "offsets that are left")


def commit_unjoined(stage: Stage, group: str, offsets: dict[Partition, Committed]) -> None:
    consumer = stage.consumer(group=group)
    consumer.assign(list(offsets))
    consumer.commit(offsets)


@plays("delete-records")
def delete_records(stage: Stage) -> None:
    topic = stage.topic(2)
    first, second = partitions_of(topic, 2)
    stage.send(topic, [*numbered(0, 10, partition=0), *numbered(0, 10, partition=1)])
    expect(stage.admin.delete_records({first: 4, second: -1}), {first: 4, second: 10}, "first offsets")
    consumer = stage.consumer()
    expect(consumer.bounds([first, second]), {first: (4, 10), second: (10, 10)}, "bounds")
    with refused(Code.OFFSET_OUT_OF_RANGE, "deleting beyond the end"):
        stage.admin.delete_records({first: 11})


@plays("find-offsets")
def find_offsets(stage: Stage) -> None:
    topic = stage.topic()
    times = [START_MS, START_MS + 50, START_MS + 20]
    stage.send(topic, [Record(b"x", timestamp_ms=time) for time in times])
    found = stage.admin.find_offsets(Partition(topic, 0))
    expect(found["earliest"].offset, 0, "earliest offset")
    expect(found["latest"].offset, 3, "latest offset")
    expect(found["max-timestamp"], Found(1, times[1]), "record with the latest timestamp")


@plays("find-local-offsets")
def find_local_offsets(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(topic, numbered(0, 3))
    found = stage.admin.find_offsets(Partition(topic, 0))
    if "earliest-local" not in found:
        not_offered("its admin client cannot look up local and tiered offsets")
    expect(found["earliest-local"].offset, 0, "earliest local offset")
    expect(found["latest-tiered"].offset, -1, "latest tiered offset")


@plays("log-sizes")
def describe_log_directories(stage: Stage) -> None:
    topic = stage.topic(2)
    stage.send(topic, [Record(b"z" * 5000, partition=0)])
    sizes = stage.admin.log_sizes(topic)
    expect(sorted(sizes), [0, 1], "partitions")
    expect_that(sizes[0] > 5000, f"5,000 bytes took {sizes[0]}")
    expect(sizes[1], 0, "size of an empty partition")


@plays("describe-producers")
def describe_producers(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(topic, numbered(0, 10), idempotent=True)
    (state,) = stage.admin.describe_producers(Partition(topic, 0))
    expect_that(state.producer_id >= 0, "the producer has no id")
    expect((state.epoch, state.last_sequence), (0, 9), "epoch and last sequence number")


@plays("describe-transaction")
def describe_a_transaction(stage: Stage) -> None:
    topic, identity, admin = stage.topic(2), stage.new_name("transaction"), stage.admin
    producer = stage.transactional_producer(identity)
    producer.begin()
    producer.send(topic, [Record(b"x", partition=number) for number in range(2)])
    expect(admin.list_transactions().get(identity), "Ongoing", "state among all")
    described = admin.describe_transaction(identity)
    expect((described.state, described.timeout_ms), ("Ongoing", 60_000), "state and timeout")
    expect(described.partitions, set(partitions_of(topic, 2)), "partitions")
    producer.commit()
    wait_for(lambda: admin.describe_transaction(identity).state == "CompleteCommit", "it is committed")


@plays("fence-producer")
def fence_a_producer_from_outside(stage: Stage) -> None:
    topic, identity = stage.topic(), stage.new_name("transaction")
    producer = stage.transactional_producer(identity)
    producer.begin()
    producer.send(topic, numbered(0, 3))
    stage.admin.fence_producer(identity)
    expect_fenced(producer, "a producer that was fenced")
    stage.send(topic, numbered(3, 5))
    expect(values(take(reader(stage, topic), 2)), numbers(3, 5), "values that are committed")


@plays("abort-transaction")
def abort_a_transaction_of_others(stage: Stage) -> None:
    topic = stage.topic()
    producer = stage.transactional_producer(stage.new_name("transaction"))
    producer.begin()
    producer.send(topic, numbered(0, 3))
    stage.admin.abort_transaction(Partition(topic, 0))
    stage.send(topic, numbered(3, 5))
    expect(values(take(reader(stage, topic), 2)), numbers(3, 5), "values that are committed")


@plays("topic-by-pages")
def describe_a_topic_by_pages(stage: Stage) -> None:
    topic = stage.topic(7)
    pages = stage.admin.describe_topic_by_pages(topic, 3)
    expect([[each.number for each in page] for page in pages], [[0, 1, 2], [3, 4, 5], [6]], "pages")
    expect_that(all(each.in_sync == each.replicas for page in pages for each in page), "not in sync")


@plays("api-versions")
def ask_for_api_versions(stage: Stage) -> None:
    versions = stage.admin.api_versions()
    # From 0 although 0 to 2 are not served: older librdkafka would not compress otherwise.
    expect(versions[PRODUCE], (0, 13), "versions of Produce")
    expect(versions[API_VERSIONS][0], 0, "first version of ApiVersions")
