"""Fetch sessions (KIP-227): what is remembered, and what is told again."""

from compat.oracle.conversation import conversation
from compat.oracle.conversations.fetch import NAMELESS, at, fetch
from compat.oracle.preparing import NOWHERE, Topic
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey

SINCE_SESSIONS = "7+"


@conversation(ApiKey.FETCH, rounds=SINCE_SESSIONS)
def a_session(talk: Talk) -> None:
    topic, other = talk.topic("t", 2), talk.topic("u")
    talk.produce(topic, "a")
    opened = talk.ask("open", fetch(at(topic), at(topic, 1), at(other), epoch=0))
    session = opened.session_id
    talk.ask("records are told again", fetch(session=session, epoch=1))
    talk.ask("read on", fetch(at(topic, offset=1), session=session, epoch=2))
    talk.ask("nothing is new", fetch(session=session, epoch=3))
    talk.produce(other, "b")
    talk.ask("records elsewhere", fetch(session=session, epoch=4))
    talk.ask("forget", fetch(session=session, epoch=5, forget=(other,)))
    talk.ask("what is left", fetch(session=session, epoch=6))
    talk.ask("forget what was never added", fetch(session=session, epoch=7, forget=(NOWHERE, other)))
    talk.ask("add again", fetch(at(other), session=session, epoch=8))
    talk.ask("a wrong offset", fetch(at(topic, offset=9), session=session, epoch=9))
    talk.ask("the wrong offset is told again", fetch(session=session, epoch=10))
    talk.ask("an unknown partition", fetch(at(topic, 9), session=session, epoch=11))
    talk.ask("an unknown topic", fetch(at(NOWHERE), session=session, epoch=12))
    talk.ask("all errors are told again", fetch(session=session, epoch=13))
    talk.ask("add and forget at once", fetch(at(topic), session=session, epoch=14, forget=(topic,)))
    talk.ask("close", fetch(session=session, epoch=-1))
    talk.ask("closed", fetch(session=session, epoch=15))


@conversation(ApiKey.FETCH, rounds=SINCE_SESSIONS)
def wrong_epochs(talk: Talk) -> None:
    topic = talk.topic("t")
    talk.produce(topic, "a")
    session = talk.ask("open", fetch(at(topic), epoch=0)).session_id
    talk.ask("an epoch too far", fetch(session=session, epoch=2))
    talk.ask("the right epoch still", fetch(session=session, epoch=1))
    talk.ask("the same epoch again", fetch(session=session, epoch=1))
    talk.ask("an epoch of long ago", fetch(session=session, epoch=0))
    talk.ask("a negative epoch", fetch(session=session, epoch=-2))
    talk.ask("no session, and an epoch", fetch(at(topic), epoch=5))
    unknown = 1_234_567
    talk.ask("an unknown session", fetch(at(topic), session=unknown, epoch=1))
    talk.ask("an unknown session that is closed", fetch(at(topic), session=unknown, epoch=-1))
    talk.ask("an unknown session that is opened", fetch(at(topic), session=unknown, epoch=0))
    talk.ask("a negative session", fetch(at(topic), session=-1, epoch=1))


@conversation(ApiKey.FETCH, rounds=SINCE_SESSIONS)
def session_ids_that_are_never_given(talk: Talk) -> None:
    """Kafka divides the positive ones among eight caches, with a remainder of eight."""
    topic = talk.topic("t")
    talk.produce(topic, "a")
    for session in (-1, 2**31 - 1, 2**31 - 8, 2**31 - 9, 2 - 2**28, 1 - 2**28, -(2**28), -(2**31)):
        for epoch in (1, 0, -1):
            talk.ask(f"{session} in epoch {epoch}", fetch(at(topic), session=session, epoch=epoch))
    talk.ask("of what is unknown", fetch(at(NOWHERE), session=2**31 - 1, epoch=1))
    talk.ask("of nothing", fetch(session=2**31 - 1, epoch=1))
    talk.ask("at isolation level 9", fetch(at(topic), session=2**31 - 1, epoch=1, isolation=9))


@conversation(ApiKey.FETCH, rounds=SINCE_SESSIONS)
def topics_without_name_and_id(talk: Talk) -> None:
    topic = talk.topic("t")
    talk.produce(topic, "a")
    one = talk.ask("open with one", fetch(at(NAMELESS), at(topic), epoch=0)).session_id
    talk.ask("go on with one", fetch(session=one, epoch=1))
    two = talk.ask("open with two", fetch(at(NAMELESS), at(NAMELESS, 1), at(topic), epoch=0)).session_id
    talk.ask("go on with two", fetch(session=two, epoch=1))
    plain = talk.ask("open without", fetch(at(topic), epoch=0)).session_id
    talk.ask("add one", fetch(at(NAMELESS), session=plain, epoch=1))
    talk.ask("add another one", fetch(at(NAMELESS, 1), session=plain, epoch=2))
    talk.ask("go on after that", fetch(session=plain, epoch=3))
    talk.ask("forget them", fetch(session=plain, epoch=4, forget=(NAMELESS,)))


@conversation(ApiKey.FETCH, rounds=SINCE_SESSIONS)
def sessions_of_little(talk: Talk) -> None:
    topic = talk.topic("t")
    session = talk.ask("open with nothing", fetch(epoch=0)).session_id
    talk.ask("add something", fetch(at(topic), session=session, epoch=1))
    talk.start("wait in it", fetch(session=session, epoch=2, max_wait_ms=10_000))
    talk.let_wait()
    talk.produce(topic, "a")
    talk.finish("wait in it")
    session = talk.ask("open with what is unknown", fetch(at(NOWHERE), at(topic, 9), epoch=0)).session_id
    talk.ask("it is still unknown", fetch(session=session, epoch=1))
    late = Topic(talk.name("late"), NOWHERE.id)
    session = talk.ask("open with what comes later", fetch(at(late), at(topic), epoch=0)).session_id
    talk.topic("late")
    talk.ask("it has come", fetch(session=session, epoch=1))


@conversation(ApiKey.FETCH, rounds=SINCE_SESSIONS)
def replacing_a_session(talk: Talk) -> None:
    topic = talk.topic("t")
    talk.produce(topic, "a")
    session = talk.ask("open", fetch(at(topic), epoch=0)).session_id
    talk.ask("open another in its place", fetch(at(topic), session=session, epoch=0))
    talk.ask("the first is gone", fetch(session=session, epoch=1))


@conversation(ApiKey.FETCH, rounds=SINCE_SESSIONS)
def a_session_that_changes_how_topics_are_named(talk: Talk) -> None:
    """Since version 13 topics are named by id."""
    topic = talk.topic("t")
    other_way = 12 if talk.version_of(ApiKey.FETCH) >= 13 else 13
    session = talk.ask("open", fetch(at(topic), epoch=0), version=other_way).session_id
    talk.ask("go on the other way", fetch(session=session, epoch=1))
    talk.ask("go on as before", fetch(session=session, epoch=1), version=other_way)


@conversation(ApiKey.FETCH, rounds="13+")
def topics_made_anew(talk: Talk) -> None:
    """A topic of the same name has another id."""
    topic = talk.topic("t")
    talk.produce(topic, "a")
    session = talk.ask("open", fetch(at(topic), epoch=0)).session_id
    talk.delete_topic(topic)
    talk.ask("deleted", fetch(session=session, epoch=1))
    anew = talk.topic("t")
    talk.produce(anew, "b")
    talk.ask("in the session", fetch(session=session, epoch=2))
    talk.ask("by the old id", fetch(at(topic)))
    talk.ask("add it by the new id", fetch(at(anew), session=session, epoch=3))
