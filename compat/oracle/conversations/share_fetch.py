"""ShareFetch: sessions, and which records a member acquires."""

from typing import Any, Final

from compat.oracle.conversation import conversation
from compat.oracle.conversations.share_state import coordinated, initialize, read, summarize, write
from compat.oracle.preparing import NOWHERE, Topic
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
)
from protocol.records.compression import Compression

GROUP_RESOURCE: Final = 32
MAX_BYTES: Final = 1_000_000
SOON_MS: Final = 5_000
"""For what Kafka does behind its answers: a fetch that waits finds it done."""
CLOSE: Final = -1
BY_BATCH, BY_RECORD = 0, 1

GAP, ACCEPT, RELEASE, REJECT, RENEW = 0, 1, 2, 3, 4

Acks = tuple[tuple[int, int, int | tuple[int, ...]], ...]
"""First and last offset, and one type or one for each."""

ANN, BEN = "ann", "ben"
NOBODY: Final = "nobody"


def batches_of(acks: Acks, kind: Any = AcknowledgementBatch) -> list[Any]:
    return [
        kind(
            first_offset=first,
            last_offset=last,
            acknowledge_types=[types] if isinstance(types, int) else list(types),
        )
        for first, last, types in acks
    ]


def fetch(
    group: str | None,
    *topics: Topic,
    member: str | None = ANN,
    epoch: int = 0,
    partitions: tuple[int, ...] = (0,),
    acks: Acks = (),
    forget: tuple[Topic, ...] = (),
    wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = MAX_BYTES,
    records: int = 100,
    batch: int = 100,
    mode: int = BY_BATCH,
    renew: bool = False,
) -> ShareFetchRequest:
    """``acks`` are of every partition that is named."""
    return ShareFetchRequest(
        group_id=group,
        member_id=member,
        share_session_epoch=epoch,
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        max_records=records,
        batch_size=batch,
        share_acquire_mode=mode,
        is_renew_ack=renew,
        topics=[
            FetchTopic(
                topic_id=topic.id,
                partitions=[
                    FetchPartition(partition_index=index, acknowledgement_batches=batches_of(acks))
                    for index in partitions
                ],
            )
            for topic in topics
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic_id=topic.id, partitions=list(partitions)) for topic in forget
        ],
    )


def begin(
    talk: Talk, group: str, topic: Topic, partition: int = 0, *, start: int = 0, loads: bool = True
) -> None:
    """Let a share group begin with a partition, as its coordinator would."""
    coordinated(talk, group, topic, partition)
    answer = talk.quietly(initialize(group, topic, partition, start=start))
    assert answer.results[0].partitions[0].error_code == ErrorCode.NONE, answer
    if loads:
        load(talk, group, topic, partition)


def load(talk: Talk, group: str, topic: Topic, partition: int = 0) -> None:
    """See to it that the broker has loaded what is known of a share partition.

    Kafka answers a fetch that does not wait before it has.
    """
    answer = talk.quietly(
        fetch(group, topic, member=NOBODY, partitions=(partition,), wait_ms=SOON_MS, min_bytes=0)
    )
    assert answer.error_code == ErrorCode.NONE, answer
    talk.quietly(fetch(group, member=NOBODY, epoch=CLOSE))


def a_group(
    talk: Talk, *batches: tuple[str, ...], name: str = "t", partitions: int = 1, **settings: Any
) -> tuple[str, Topic]:
    """A share group at the beginning of a topic that holds these batches."""
    group, topic = talk.name("g"), talk.topic(name, partitions)
    if settings:
        set_up(talk, group, **settings)
    for partition in range(partitions):
        begin(talk, group, topic, partition)
    for values in batches:
        talk.produce(topic, *values)
    return group, topic


def set_up(talk: Talk, group: str, **settings: str) -> None:
    """Give a group settings of its own: ``share_delivery_count_limit``."""
    changes = [AlterableConfig(name=name.replace("_", "."), value=value) for name, value in settings.items()]
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=changes)
    (changed,) = talk.quietly(IncrementalAlterConfigsRequest(resources=[resource])).responses
    assert changed.error_code == ErrorCode.NONE, changed
    talk.settle()


THREE: Final = (("a", "b", "c"), ("d", "e"), ("f",))
"""Offsets 0 to 2, 3 to 4, and 5."""


@conversation(ApiKey.SHARE_FETCH)
def one_member(talk: Talk) -> None:
    group, topic = a_group(talk)
    talk.ask("open a session", fetch(group, topic))
    talk.ask("nothing to fetch", fetch(group, epoch=1))
    talk.produce(topic, "a", "b", "c")
    talk.produce(topic, "d", "e")
    talk.ask("fetch", fetch(group, epoch=2))
    talk.ask("nothing more to fetch", fetch(group, epoch=3))
    talk.ask("acknowledge a batch", fetch(group, topic, epoch=4, acks=((0, 2, ACCEPT),)))
    talk.ask("acknowledge the other one", fetch(group, topic, epoch=5, acks=((3, 4, ACCEPT),)))
    talk.ask("acknowledge it again", fetch(group, topic, epoch=6, acks=((3, 4, ACCEPT),)))
    talk.ask("what is stored", summarize(group, topic))
    talk.produce(topic, "f")
    talk.ask("fetch what is new", fetch(group, epoch=7))
    talk.ask("close the session", fetch(group, epoch=CLOSE))
    talk.ask("close it again", fetch(group, epoch=CLOSE))


@conversation(ApiKey.SHARE_FETCH)
def session_epochs(talk: Talk) -> None:
    group, topic = a_group(talk)
    talk.ask("no session", fetch(group, topic, epoch=1))
    talk.ask("close no session", fetch(group, epoch=CLOSE))
    talk.ask("open", fetch(group, topic))
    talk.ask("too small", fetch(group, epoch=0x7FFFFFFF))
    talk.ask("too large", fetch(group, epoch=2))
    talk.ask("negative", fetch(group, epoch=-2))
    talk.ask("right", fetch(group, epoch=1))
    talk.ask("repeated", fetch(group, epoch=1))
    talk.ask("open again", fetch(group, topic))
    talk.ask("from the beginning", fetch(group, epoch=1))
    talk.ask("of another member", fetch(group, member=BEN, epoch=2))
    talk.ask("of another group", fetch(talk.name("h"), epoch=2))
    talk.ask("close", fetch(group, epoch=CLOSE))
    talk.ask("closed", fetch(group, epoch=2))


@conversation(ApiKey.SHARE_FETCH)
def who_asks(talk: Talk) -> None:
    group, topic = a_group(talk)
    for label, group_id, member in (
        ("no group", None, ANN),
        ("a group without name", "", talk.name("m")),
        ("no member", group, None),
        ("a member without name", group, ""),
        ("a member with a long name", group, "m" * 36),
        ("a member with too long a name", group, "m" * 37),
    ):
        talk.ask(label, fetch(group_id, topic, member=member))


@conversation(ApiKey.SHARE_FETCH)
def partitions_of_a_session(talk: Talk) -> None:
    group, topic = a_group(talk, partitions=2)
    other = talk.topic("other")
    begin(talk, group, other)
    talk.ask("open with nothing", fetch(group))
    talk.ask("add a partition", fetch(group, topic, epoch=1))
    talk.ask("add it again", fetch(group, topic, epoch=2))
    talk.ask("add another one", fetch(group, topic, epoch=3, partitions=(1,)))
    talk.ask("add another topic", fetch(group, other, epoch=4))
    talk.ask("add what is not there", fetch(group, topic, epoch=5, partitions=(7,)))
    talk.ask("once more with it", fetch(group, epoch=6))
    talk.ask("forget it", fetch(group, epoch=7, partitions=(7,), forget=(topic,)))
    talk.ask("add an unknown topic", fetch(group, NOWHERE, epoch=8))
    talk.ask("forget it, too", fetch(group, epoch=9, forget=(NOWHERE,)))
    talk.ask("forget what was never added", fetch(group, epoch=10, forget=(NOWHERE,)))
    talk.ask("forget a partition", fetch(group, epoch=11, forget=(topic,)))
    talk.produce(topic, "a")
    talk.produce(topic, "b", partition=1)
    talk.ask("fetch from what is left", fetch(group, epoch=12))
    talk.ask("add and forget at once", fetch(group, topic, epoch=13, forget=(topic,)))
    talk.ask("add it for good", fetch(group, topic, epoch=14))


@conversation(ApiKey.SHARE_FETCH)
def opening_with_what_is_not_there(talk: Talk) -> None:
    group, topic = a_group(talk, ("a",))
    talk.ask("an unknown topic", fetch(group, NOWHERE))
    talk.ask("an unknown partition", fetch(group, topic, partitions=(7, -1)))
    talk.ask("a known one beside it", fetch(group, topic, partitions=(0, 7)))
    talk.ask("acknowledging at once", fetch(group, topic, acks=((0, 0, ACCEPT),)))
    talk.ask("forgetting at once", fetch(group, topic, forget=(topic,)))


@conversation(ApiKey.SHARE_FETCH)
def two_members(talk: Talk) -> None:
    group, topic = a_group(talk, *THREE)
    talk.ask("ann has all", fetch(group, topic), by=ANN)
    talk.ask("ben has nothing", fetch(group, topic, member=BEN), by=BEN)
    talk.ask("ben acknowledges", fetch(group, topic, member=BEN, epoch=1, acks=((0, 2, ACCEPT),)), by=BEN)
    talk.ask("ann releases some", fetch(group, topic, epoch=1, acks=((3, 4, RELEASE),), records=0), by=ANN)
    talk.ask("ben has them", fetch(group, member=BEN, epoch=2), by=BEN)
    talk.ask("ann acknowledges them", fetch(group, topic, epoch=2, acks=((3, 4, ACCEPT),)), by=ANN)
    talk.ask("ann closes", fetch(group, epoch=CLOSE), by=ANN)
    talk.ask("ben has the rest", fetch(group, member=BEN, epoch=3, wait_ms=SOON_MS), by=BEN)
    talk.ask("what is stored", read(group, topic))


@conversation(ApiKey.SHARE_FETCH)
def how_many_records(talk: Talk) -> None:
    for mode, name in ((BY_BATCH, "by batch"), (BY_RECORD, "by record")):
        group, topic = talk.name(f"g{mode}"), talk.topic(f"t{mode}")
        begin(talk, group, topic)
        talk.produce(topic, *"abcde")
        talk.produce(topic, *"fghij")
        talk.produce(topic, "k")
        talk.ask(f"{name}, none", fetch(group, topic, mode=mode, records=0))
        talk.ask(f"{name}, a negative number", fetch(group, epoch=1, mode=mode, records=-1))
        for epoch, count in enumerate((2, 4, 1, 10, 10), 2):
            talk.ask(f"{name}, {count} at {epoch}", fetch(group, epoch=epoch, mode=mode, records=count))


@conversation(ApiKey.SHARE_FETCH)
def batch_sizes(talk: Talk) -> None:
    for size in (0, 1, 2, 3, 100):
        group, topic = talk.name(f"g{size}"), talk.topic(f"t{size}")
        begin(talk, group, topic)
        for values in ("a", "bc", "d", "efgh", "i"):
            talk.produce(topic, *values)
        talk.ask(f"pieces of {size}", fetch(group, topic, batch=size))
        talk.ask(f"close after {size}", fetch(group, epoch=CLOSE))
        talk.ask(f"pieces of {size} once more", fetch(group, topic, batch=size, wait_ms=SOON_MS))


@conversation(ApiKey.SHARE_FETCH)
def an_acquire_mode_that_is_none(talk: Talk) -> None:
    group, topic = a_group(talk, ("a", "b"))
    talk.ask("mode 2", fetch(group, topic, mode=2))
    talk.ask("mode -1", fetch(group, topic, mode=-1))
    talk.ask("mode 0", fetch(group, topic))


@conversation(ApiKey.SHARE_FETCH)
def how_many_bytes(talk: Talk) -> None:
    group, topic = a_group(talk, *THREE)
    talk.ask("none", fetch(group, topic, max_bytes=0))
    talk.ask("one", fetch(group, epoch=1, max_bytes=1))
    talk.ask("the next with one", fetch(group, epoch=2, max_bytes=1))
    talk.ask("many", fetch(group, epoch=3, max_bytes=1_000))
    talk.ask("nothing more", fetch(group, epoch=4, max_bytes=1_000))
    talk.ask("release the first", fetch(group, topic, epoch=5, records=0, acks=((0, 2, RELEASE),)))
    talk.ask("a part of the second batch", fetch(group, epoch=6, max_bytes=100))


@conversation(ApiKey.SHARE_FETCH)
def waiting(talk: Talk) -> None:
    group, topic = a_group(talk)
    talk.ask("in vain", fetch(group, topic, wait_ms=50))
    talk.start("for records", fetch(group, epoch=1, wait_ms=10_000))
    talk.let_wait()
    talk.produce(topic, "a")
    talk.finish("for records")
    talk.start("for many bytes", fetch(group, epoch=2, wait_ms=10_000, min_bytes=100))
    talk.let_wait()
    talk.produce(topic, "b")
    talk.let_wait()
    talk.produce(topic, "c")
    talk.finish("for many bytes")
    talk.ask("for no bytes", fetch(group, epoch=3, wait_ms=10_000, min_bytes=0))
    talk.start("for a release", fetch(group, topic, member=BEN, wait_ms=10_000), by=BEN)
    talk.let_wait()
    talk.ask("release", fetch(group, topic, epoch=4, records=0, acks=((0, 0, RELEASE),)))
    talk.finish("for a release")
    talk.start("for the end of a session", fetch(group, member=BEN, epoch=1, wait_ms=10_000), by=BEN)
    talk.let_wait()
    talk.ask("close", fetch(group, epoch=CLOSE))
    talk.finish("for the end of a session")


@conversation(ApiKey.SHARE_FETCH)
def what_was_released(talk: Talk) -> None:
    group, topic = a_group(talk, *THREE)
    talk.ask("fetch", fetch(group, topic))
    talk.ask("release one", fetch(group, topic, epoch=1, records=0, acks=((1, 1, RELEASE),)))
    talk.ask("fetch it", fetch(group, epoch=2))
    talk.ask("release all", fetch(group, topic, epoch=3, records=0, acks=((0, 5, RELEASE),)))
    talk.ask("fetch them", fetch(group, epoch=4))
    talk.ask("release some", fetch(group, topic, epoch=5, records=0, acks=((2, 2, RELEASE), (4, 5, RELEASE))))
    talk.ask("fetch those", fetch(group, epoch=6))
    request = fetch(group, topic, epoch=7, acks=((2, 2, RELEASE),), wait_ms=SOON_MS)
    talk.ask("release and fetch at once", request)
    talk.ask("what is stored", read(group, topic))


@conversation(ApiKey.SHARE_FETCH)
def deliveries_are_counted(talk: Talk) -> None:
    group, topic = a_group(talk, ("a", "b", "c", "d", "e", "f", "g", "h"), ("i",))
    epoch = 0
    for delivery in range(1, 9):
        answer = talk.ask(f"delivery {delivery}", fetch(group, topic, epoch=epoch))
        acquired = [
            (each.first_offset, each.last_offset, RELEASE)
            for response in answer.responses
            for partition in response.partitions
            for each in partition.acquired_records
        ]
        request = fetch(group, topic, epoch=epoch + 1, records=0, acks=tuple(acquired))
        talk.ask(f"release {delivery}", request)
        epoch += 2
    talk.ask("what is stored", read(group, topic))


@conversation(ApiKey.SHARE_FETCH)
def a_low_limit_of_deliveries(talk: Talk) -> None:
    group, topic = a_group(talk, ("a", "b"), ("c",), share_delivery_count_limit="2")
    talk.ask("fetch", fetch(group, topic))
    talk.ask("release", fetch(group, topic, epoch=1, records=0, acks=((0, 2, RELEASE),)))
    talk.ask("fetch again", fetch(group, epoch=2))
    talk.ask("release again", fetch(group, topic, epoch=3, records=0, acks=((0, 1, RELEASE),)))
    talk.ask("nothing left", fetch(group, epoch=4))
    talk.ask("what is stored", read(group, topic))
    talk.ask("its summary", summarize(group, topic))


@conversation(ApiKey.SHARE_FETCH)
def a_limit_of_locks(talk: Talk) -> None:
    group, topic = a_group(talk, share_partition_max_record_locks="100")
    for _ in range(3):
        talk.produce(topic, *(str(number) for number in range(60)))
    talk.ask("fetch", fetch(group, topic, records=60))
    talk.ask("fetch to the limit", fetch(group, epoch=1, records=200))
    talk.ask("fetch beyond it", fetch(group, epoch=2, records=200))
    talk.ask("release behind others", fetch(group, topic, epoch=3, records=0, acks=((70, 79, RELEASE),)))
    talk.ask("fetch those", fetch(group, epoch=4, records=200))
    request = fetch(group, topic, epoch=5, acks=((0, 29, ACCEPT),), records=200, wait_ms=SOON_MS)
    talk.ask("acknowledge the first", request)


@conversation(ApiKey.SHARE_FETCH)
def locks_end(talk: Talk) -> None:
    group, topic = a_group(talk, ("a", "b"), ("c",), share_record_lock_duration_ms="15000")
    answer = talk.ask("a lock of fifteen seconds", fetch(group, topic))
    assert answer.acquisition_lock_timeout_ms == 15_000


@conversation(ApiKey.SHARE_FETCH)
def the_log_s_start_moves(talk: Talk) -> None:
    group, topic = a_group(talk, *THREE)
    talk.ask("fetch one batch", fetch(group, topic, records=1))
    talk.ask("release a part", fetch(group, topic, epoch=1, records=0, acks=((0, 0, RELEASE),)))
    talk.delete_records(topic, 2)
    talk.ask("fetch", fetch(group, epoch=2))
    talk.ask("fetch again", fetch(group, epoch=3))
    talk.ask("acknowledge below the start", fetch(group, topic, epoch=4, acks=((1, 1, ACCEPT),)))
    talk.ask("acknowledge across the start", fetch(group, topic, epoch=5, acks=((1, 2, ACCEPT),)))
    talk.ask("what is stored", read(group, topic))
    talk.delete_records(topic, 6)
    talk.ask("fetch from an empty log", fetch(group, epoch=6))
    talk.ask("acknowledge what is gone", fetch(group, topic, epoch=7, acks=((3, 5, ACCEPT),)))
    talk.produce(topic, "g")
    talk.ask("fetch what is new", fetch(group, epoch=8))
    talk.ask("what is stored at last", read(group, topic))


@conversation(ApiKey.SHARE_FETCH)
def where_a_group_begins(talk: Talk) -> None:
    topic = talk.topic("t")
    talk.produce(topic, "a", "b", "c")
    for reset in ("earliest", "latest", "by_duration:PT1H", "by_duration:P36500D"):
        group = talk.name(f"g-{reset.replace(':', '-')}")
        set_up(talk, group, share_auto_offset_reset=reset)
        begin(talk, group, topic, start=-1, loads=False)
        request = fetch(group, topic, wait_ms=SOON_MS, min_bytes=0)  # answered when the group has begun
        talk.ask(reset, request)
    group = talk.name("g-given")
    begin(talk, group, topic, start=2, loads=False)
    talk.ask("in the middle of a batch", fetch(group, topic, wait_ms=SOON_MS))
    group = talk.name("g-behind")
    begin(talk, group, topic, start=7, loads=False)
    talk.ask("behind the end", fetch(group, topic, wait_ms=SOON_MS))


@conversation(ApiKey.SHARE_FETCH)
def what_is_not_initialized(talk: Talk) -> None:
    group, topic = talk.name("g"), talk.topic("t")
    coordinated(talk, group, topic)
    talk.ask("fetch", fetch(group, topic, wait_ms=SOON_MS))
    talk.ask("fetch again", fetch(group, epoch=1, wait_ms=SOON_MS))


@conversation(ApiKey.SHARE_FETCH)
def what_was_stored_by_another_leader(talk: Talk) -> None:
    group, topic = talk.name("g"), talk.topic("t")
    coordinated(talk, group, topic)
    for values in ("abc", "defg", "hijkl"):
        talk.produce(topic, *values)
    talk.quietly(initialize(group, topic))
    talk.quietly(write(group, topic, (1, 2, 0, 2), (5, 6, 2, 1), (8, 8, 4, 5), start=1))
    talk.ask("fetch", fetch(group, topic, wait_ms=SOON_MS))
    talk.ask("fetch the rest", fetch(group, epoch=1))
    talk.ask("acknowledge all", fetch(group, topic, epoch=2, acks=((1, 4, ACCEPT), (9, 11, ACCEPT))))
    talk.ask("what is stored", read(group, topic))


@conversation(ApiKey.SHARE_FETCH)
def another_leader_has_come(talk: Talk) -> None:
    group, topic = a_group(talk, ("a", "b"), ("c",))
    talk.ask("fetch", fetch(group, topic))
    talk.quietly(read(group, topic, leader=9))
    talk.ask("acknowledge", fetch(group, topic, epoch=1, acks=((0, 1, ACCEPT),), records=0))
    request = fetch(group, topic, epoch=2, acks=((2, 2, ACCEPT),), records=0)
    talk.ask("acknowledge again", request)
    talk.ask("fetch once more", fetch(group, epoch=3, wait_ms=SOON_MS))


@conversation(ApiKey.SHARE_FETCH)
def compressed_batches(talk: Talk) -> None:
    group, topic = a_group(talk)
    for codec in Compression:
        talk.produce(topic, "a", "b", compression=codec)
    talk.ask("fetch", fetch(group, topic))


@conversation(ApiKey.SHARE_FETCH)
def a_deleted_topic(talk: Talk) -> None:
    group, topic = a_group(talk, ("a",))
    talk.ask("fetch", fetch(group, topic))
    talk.delete_topic(topic)
    talk.ask("fetch again", fetch(group, epoch=1))
    talk.ask("acknowledge", fetch(group, topic, epoch=2, acks=((0, 0, ACCEPT),)))
    talk.ask("close", fetch(group, epoch=CLOSE))
