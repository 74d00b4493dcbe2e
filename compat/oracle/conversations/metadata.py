"""Metadata: topics by name, by id, all of them, and made in passing."""

from compat.oracle.conversation import conversation
from compat.oracle.preparing import NOWHERE
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic


def ask_for(*names: str | None, ids: tuple[bytes, ...] = (), create: bool = False) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    topics += [MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in ids]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create)


def may_not_create(talk: Talk) -> bool:
    """Until version 3 every request creates what it asks for."""
    return talk.version_of(ApiKey.METADATA) >= 4


@conversation(ApiKey.METADATA)
def topics(talk: Talk) -> None:
    create = not may_not_create(talk)
    topic = talk.topic("t", 2)
    talk.ask("one", ask_for(topic.name, create=create))
    talk.ask("twice", ask_for(topic.name, topic.name, create=create))
    talk.ask("no topics", ask_for(create=create))
    talk.ask("all topics", MetadataRequest(topics=None))
    for name in ("a b", "", ".", "x" * 250, "__cluster_metadata"):
        talk.ask(f"a topic called {name[:20]!r}", ask_for(name, create=create))
    talk.ask("internal topics", ask_for("__consumer_offsets", create=create))
    talk.ask("a null name", ask_for(None, create=create))


@conversation(ApiKey.METADATA, rounds="4+")
def unknown_topics(talk: Talk) -> None:
    topic = talk.topic("t")
    talk.ask("unknown", ask_for(NOWHERE.name))
    talk.ask("known and unknown", ask_for(topic.name, NOWHERE.name))
    talk.ask("a bad name and a good one", ask_for("a b", topic.name))


@conversation(ApiKey.METADATA, rounds="10+")
def topics_by_id(talk: Talk) -> None:
    topic = talk.topic("t")
    talk.ask("by id", ask_for(ids=(topic.id,)))
    talk.ask("by id twice", ask_for(ids=(topic.id, topic.id)))
    talk.ask("by an unknown id", ask_for(ids=(NOWHERE.id,)))
    talk.ask("known and unknown", ask_for(ids=(NOWHERE.id, topic.id)))
    talk.ask("by no id", ask_for(ids=(bytes(16),)))
    both = MetadataRequest(topics=[MetadataRequestTopic(name=topic.name, topic_id=NOWHERE.id)])
    talk.ask("by name and another id", both)
    talk.ask("by name, and by id", ask_for(topic.name, ids=(topic.id,)))


@conversation(ApiKey.METADATA)
def topics_made_in_passing(talk: Talk) -> None:
    name = talk.name("new")
    talk.ask("the request that makes it", ask_for(name, create=True))
    talk.settle()
    talk.ask("a moment later", ask_for(name, create=True))
    talk.ask("a name that collides", ask_for(talk.name("ne.w"), create=True))
    talk.settle()
    talk.ask("a name that collides with it", ask_for(talk.name("ne_w"), create=True))
    talk.ask("a name that nothing can be called", ask_for("a b", create=True))
    talk.ask("two more", ask_for(talk.name("x"), talk.name("y"), create=True))
    talk.settle()
    talk.ask("those two", ask_for(talk.name("x"), talk.name("y"), create=True))


@conversation(ApiKey.METADATA, rounds="8+")
def authorized_operations(talk: Talk) -> None:
    topic = talk.topic("t")
    request = ask_for(topic.name, NOWHERE.name)
    request.include_topic_authorized_operations = True
    talk.ask("of topics", request)
    request = ask_for()
    request.include_cluster_authorized_operations = True
    talk.ask("of the cluster", request)
