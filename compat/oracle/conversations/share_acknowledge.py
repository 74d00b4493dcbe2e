"""ShareAcknowledge, and acknowledgements in ShareFetch: what members may say of records."""

from typing import Any, Final

from compat.oracle.conversation import conversation
from compat.oracle.conversations.share_fetch import (
    ACCEPT,
    ANN,
    BEN,
    CLOSE,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    SOON_MS,
    THREE,
    Acks,
    a_group,
    batches_of,
    fetch,
    set_up,
)
from compat.oracle.conversations.share_state import read, summarize
from compat.oracle.preparing import NOWHERE, Topic
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)

BOTH: Final = (ApiKey.SHARE_ACKNOWLEDGE, ApiKey.SHARE_FETCH)
SINCE_RENEWAL: Final = "2+"


def acknowledge(
    group: str | None,
    topic: Topic | None,
    *acks: Any,
    member: str | None = ANN,
    epoch: int = 1,
    partition: int = 0,
    renew: bool = False,
) -> ShareAcknowledgeRequest:
    topics = []
    if topic is not None:
        batches = batches_of(acks, AcknowledgementBatch)
        data = AcknowledgePartition(partition_index=partition, acknowledgement_batches=batches)
        topics.append(AcknowledgeTopic(topic_id=topic.id, partitions=[data]))
    return ShareAcknowledgeRequest(
        group_id=group, member_id=member, share_session_epoch=epoch, is_renew_ack=renew, topics=topics
    )


def fetched(talk: Talk, *batches: tuple[str, ...], **settings: Any) -> tuple[str, Topic]:
    """A group whose one member has all records of a topic."""
    group, topic = a_group(talk, *(batches or THREE), **settings)
    talk.ask("fetch", fetch(group, topic))
    return group, topic


@conversation(*BOTH)
def every_type(talk: Talk) -> None:
    group, topic = fetched(talk)
    talk.ask("accept", acknowledge(group, topic, (0, 0, ACCEPT)))
    talk.ask("release", acknowledge(group, topic, (1, 1, RELEASE), epoch=2))
    talk.ask("reject", acknowledge(group, topic, (2, 2, REJECT), epoch=3))
    talk.ask("a gap", acknowledge(group, topic, (3, 3, GAP), epoch=4))
    talk.ask("what is stored", read(group, topic))
    talk.ask("its summary", summarize(group, topic))
    talk.ask("several at once", acknowledge(group, topic, (4, 5, (ACCEPT, REJECT)), epoch=5))
    talk.ask("what is stored now", read(group, topic))
    talk.ask("fetch what is left", fetch(group, epoch=6))
    talk.ask("accept that, too", acknowledge(group, topic, (1, 1, ACCEPT), epoch=7))
    talk.ask("what is stored at last", read(group, topic))
    talk.ask("the last summary", summarize(group, topic))


@conversation(*BOTH)
def session_epochs(talk: Talk) -> None:
    group, topic = a_group(talk, *THREE)
    talk.ask("no session", acknowledge(group, topic, (0, 2, ACCEPT)))
    talk.ask("close no session", acknowledge(group, topic, epoch=CLOSE))
    talk.ask("epoch zero without a session", acknowledge(group, topic, (0, 2, ACCEPT), epoch=0))
    talk.ask("fetch", fetch(group, topic))
    talk.ask("epoch zero", acknowledge(group, topic, (0, 2, ACCEPT), epoch=0))
    talk.ask("too large", acknowledge(group, topic, (0, 2, ACCEPT), epoch=2))
    talk.ask("right", acknowledge(group, topic, (0, 2, ACCEPT), epoch=1))
    talk.ask("repeated", acknowledge(group, topic, (3, 4, ACCEPT), epoch=1))
    talk.ask("the fetch behind it", fetch(group, epoch=2))
    talk.ask("close", acknowledge(group, topic, (3, 4, ACCEPT), epoch=CLOSE))
    talk.ask("closed", acknowledge(group, topic, (5, 5, ACCEPT), epoch=3))
    talk.ask("what was released", fetch(group, topic, wait_ms=SOON_MS))


@conversation(*BOTH)
def who_says_so(talk: Talk) -> None:
    group, topic = fetched(talk)
    for label, group_id, member in (
        ("no group", None, ANN),
        ("a group without name", "", talk.name("m")),
        ("another group", talk.name("h"), ANN),
        ("no member", group, None),
        ("a member without name", group, ""),
        ("a member with too long a name", group, "m" * 37),
        ("another member", group, BEN),
    ):
        talk.ask(label, acknowledge(group_id, topic, (0, 2, ACCEPT), member=member))
    talk.ask("another member fetches", fetch(group, topic, member=BEN), by=BEN)
    talk.ask("another member acknowledges", acknowledge(group, topic, (0, 2, ACCEPT), member=BEN), by=BEN)
    request = acknowledge(group, topic, (1, 1, ACCEPT), member=BEN, epoch=2)
    talk.ask("another member acknowledges a part", request, by=BEN)
    talk.ask("a part of it is acknowledged", acknowledge(group, topic, (1, 1, ACCEPT)))
    request = acknowledge(group, topic, (2, 2, ACCEPT), member=BEN, epoch=3)
    talk.ask("another member acknowledges another part", request, by=BEN)


@conversation(*BOTH)
def what_was_not_acquired(talk: Talk) -> None:
    group, topic = a_group(talk, *THREE)
    talk.ask("fetch one batch", fetch(group, topic, records=1))
    cases: dict[str, Acks] = {
        "behind it": ((3, 4, ACCEPT),),
        "across its end": ((1, 4, ACCEPT),),
        "far behind": ((100, 200, ACCEPT),),
        "before the log": ((-5, -1, ACCEPT),),
        "across the beginning": ((-1, 0, ACCEPT),),
        "one and one that is not": ((0, 0, ACCEPT), (3, 3, ACCEPT)),
        "the first of them": ((0, 0, ACCEPT),),
        "the first once more": ((0, 0, ACCEPT),),
        "across what is done": ((0, 1, ACCEPT),),
        "the second": ((1, 1, RELEASE),),
        "the second, which is released": ((1, 1, ACCEPT),),
        "all of them": ((1, 2, ACCEPT),),
        "the third": ((2, 2, ACCEPT),),
    }
    for epoch, (label, acks) in enumerate(cases.items(), 1):
        talk.ask(label, acknowledge(group, topic, *acks, epoch=epoch))
    talk.ask("what is stored", read(group, topic))


@conversation(*BOTH)
def what_is_malformed(talk: Talk) -> None:
    group, topic = fetched(talk)
    cases: dict[str, Acks] = {
        "a reversed range": ((2, 0, ACCEPT),),
        "ranges out of order": ((3, 4, ACCEPT), (0, 2, ACCEPT)),
        "ranges that overlap": ((0, 2, ACCEPT), (2, 4, ACCEPT)),
        "ranges that overlap by two": ((0, 3, ACCEPT), (2, 4, ACCEPT)),
        "no types": ((0, 2, ()),),
        "too few types": ((0, 2, (ACCEPT, ACCEPT)),),
        "too many types": ((0, 0, (ACCEPT, ACCEPT)),),
        "type 3 of three": ((3, 4, (ACCEPT, REJECT)),),
        "type 4": ((5, 5, RENEW),),
        "type 5": ((5, 5, 5),),
        "type -1": ((5, 5, -1),),
        "nothing": (),
    }
    for epoch, (label, acks) in enumerate(cases.items(), 1):
        talk.ask(label, acknowledge(group, topic, *acks, epoch=epoch))
    epoch = len(cases) + 1
    talk.ask("an unknown partition", acknowledge(group, topic, (0, 0, ACCEPT), epoch=epoch, partition=7))
    talk.ask("an unknown topic", acknowledge(group, NOWHERE, (0, 0, ACCEPT), epoch=epoch + 1))
    talk.ask("no topic", acknowledge(group, None, epoch=epoch + 2))
    twice = acknowledge(group, topic, (0, 0, ACCEPT), epoch=epoch + 3)
    twice.topics[0].partitions += acknowledge(group, topic, (1, 1, ACCEPT)).topics[0].partitions
    talk.ask("a partition twice", twice)
    talk.ask("what is stored", read(group, topic))


@conversation(*BOTH)
def with_a_fetch(talk: Talk) -> None:
    group, topic = fetched(talk)
    cases: dict[str, Acks] = {
        "a reversed range": ((2, 0, ACCEPT),),
        "type 5": ((0, 0, 5),),
        "type 4": ((0, 0, RENEW),),
        "not acquired": ((100, 100, ACCEPT),),
        "a part": ((1, 1, ACCEPT),),
        "another part": ((0, 0, REJECT), (2, 3, ACCEPT)),
    }
    for epoch, (label, acks) in enumerate(cases.items(), 1):
        talk.ask(label, fetch(group, topic, epoch=epoch, acks=acks))
    epoch = len(cases) + 1
    request = fetch(group, topic, epoch=epoch, partitions=(7,), acks=((0, 0, ACCEPT),))
    talk.ask("an unknown partition", request)
    talk.ask("an unknown topic", fetch(group, NOWHERE, epoch=epoch + 1, acks=((0, 0, ACCEPT),)))
    talk.ask("at the end", fetch(group, topic, epoch=CLOSE, acks=((4, 4, ACCEPT),)))
    talk.ask("what is left", fetch(group, topic, wait_ms=SOON_MS))


@conversation(*BOTH)
def acknowledging_across_batches(talk: Talk) -> None:
    group, topic = fetched(talk)
    talk.ask("from one into the next", acknowledge(group, topic, (1, 3, ACCEPT)))
    talk.ask("what is stored", read(group, topic))
    talk.ask("the rest in two ranges", acknowledge(group, topic, (0, 0, ACCEPT), (4, 5, REJECT), epoch=2))
    talk.ask("what is stored at last", read(group, topic))
    talk.ask("its summary", summarize(group, topic))


@conversation(*BOTH, rounds=SINCE_RENEWAL)
def renewing(talk: Talk) -> None:
    group, topic = fetched(talk)
    talk.ask("renew a batch", acknowledge(group, topic, (0, 2, RENEW), renew=True))
    talk.ask("renew a part", acknowledge(group, topic, (4, 4, RENEW), epoch=2, renew=True))
    talk.ask("renew and accept", acknowledge(group, topic, (3, 4, (ACCEPT, RENEW)), epoch=3, renew=True))
    talk.ask("accept in a renewal", acknowledge(group, topic, (0, 2, ACCEPT), epoch=4, renew=True))
    talk.ask("renew what is accepted", acknowledge(group, topic, (0, 2, RENEW), epoch=5, renew=True))
    talk.ask("renew without saying so", acknowledge(group, topic, (5, 5, RENEW), epoch=6))
    request = fetch(group, topic, epoch=7, acks=((5, 5, RENEW),), renew=True)
    talk.ask("renew and fetch", request)
    request.max_bytes = request.min_bytes = request.max_records = 0
    talk.produce(topic, "g")
    talk.ask("renew in a fetch", request)
    request.share_session_epoch = 8
    talk.ask("renew in a fetch with the next epoch", request)
    for field in ("max_bytes", "min_bytes", "max_records", "max_wait_ms"):
        setattr(request, field, 1)
        talk.ask(f"renew with {field}", request)
        setattr(request, field, 0)
    talk.ask("fetch what is new", fetch(group, epoch=9))
    talk.ask("what is stored", read(group, topic))


@conversation(*BOTH, rounds=SINCE_RENEWAL)
def a_group_that_must_not_renew(talk: Talk) -> None:
    group, topic = fetched(talk, share_renew_acknowledge_enable="false")
    talk.ask("renew a batch", acknowledge(group, topic, (0, 2, RENEW), renew=True))
    talk.ask("renew a part", acknowledge(group, topic, (4, 4, RENEW), epoch=2, renew=True))
    talk.ask("renew and accept", acknowledge(group, topic, (3, 4, (ACCEPT, RENEW)), epoch=3, renew=True))
    talk.ask("what is stored", read(group, topic))
    set_up(talk, group, share_renew_acknowledge_enable="true")
    talk.ask("renew when it may", acknowledge(group, topic, (0, 2, RENEW), epoch=4, renew=True))
