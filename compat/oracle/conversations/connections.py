"""What is no request: bytes that end, versions and keys that nobody has, frames of any length."""

import struct

from compat.oracle.conversation import conversation
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

NO_SUCH_GROUP = "no such group"
HEARTBEAT = HeartbeatRequest(group_id=NO_SUCH_GROUP, generation_id=1, member_id="m")


@conversation(ApiKey.HEARTBEAT)
def bodies(talk: Talk) -> None:
    body = HEARTBEAT.encode(talk.version_of(ApiKey.HEARTBEAT))
    talk.ask_bytes("as it should be", ApiKey.HEARTBEAT, body)
    talk.ask_bytes("with bytes behind it", ApiKey.HEARTBEAT, body + b"more")
    talk.ask_bytes("without the last byte", ApiKey.HEARTBEAT, body[:-1])
    talk.ask_bytes("half of it", ApiKey.HEARTBEAT, body[: len(body) // 2])
    talk.ask_bytes("empty", ApiKey.HEARTBEAT, b"")


@conversation(ApiKey.HEARTBEAT, rounds="4")
def tagged_fields(talk: Talk) -> None:
    body = HEARTBEAT.encode(4)[:-1]
    talk.ask_bytes("an unknown one", ApiKey.HEARTBEAT, body + bytes((1, 99, 2)) + b"xx")
    talk.ask_bytes("two, out of order", ApiKey.HEARTBEAT, body + bytes((2, 99, 1)) + b"x" + bytes((7, 0)))
    talk.ask_bytes("one that is cut off", ApiKey.HEARTBEAT, body + bytes((1, 99, 9)) + b"x")
    talk.ask_bytes("a count that is not kept", ApiKey.HEARTBEAT, body + bytes((5,)))


@conversation(ApiKey.METADATA, rounds="0-12")
def strings(talk: Talk) -> None:
    topics = [MetadataRequestTopic(name="a?b")]
    version = talk.version_of(ApiKey.METADATA)
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=version < 4)
    good = request.encode(version)
    talk.ask_bytes("bytes that are no text", ApiKey.METADATA, good.replace(b"a?b", b"a\xffb"))
    if version >= 9:
        at = good.index(b"a?b") - 1
        for size in (0, 1, 100):
            talk.ask_bytes(
                f"a length byte of {size}", ApiKey.METADATA, good[:at] + bytes((size,)) + good[at + 1 :]
            )
        talk.ask_bytes("a count of 1000", ApiKey.METADATA, b"\xe9\x07" + good[1:])
        talk.ask_bytes("a count that does not end", ApiKey.METADATA, b"\xff" * 6 + good[1:])
    else:
        at = good.index(b"a?b") - 2
        for size in (-1, -2, 300):
            changed = good[:at] + struct.pack(">h", size) + good[at + 2 :]
            talk.ask_bytes(f"a length of {size}", ApiKey.METADATA, changed)
        for count in (-2, 2**31 - 1, 1000):
            talk.ask_bytes(f"a count of {count}", ApiKey.METADATA, struct.pack(">i", count) + good[4:])


@conversation(ApiKey.LIST_GROUPS, rounds="5")
def versions_that_nobody_knows(talk: Talk) -> None:
    for key in (ApiKey.LIST_GROUPS, ApiKey.METADATA, ApiKey.FETCH, ApiKey.HEARTBEAT):
        for version in (-1, 99, 32_767):
            talk.ask_bytes(f"{key.name.lower()} {version}", key, b"", version=version)
    talk.ask_bytes("fetch 3", ApiKey.FETCH, b"", version=3)
    talk.ask_bytes("offset_commit 1", ApiKey.OFFSET_COMMIT, b"", version=1)


@conversation(ApiKey.LIST_GROUPS, rounds="5")
def frames(talk: Talk) -> None:
    for label, data in {
        "a length of 0": bytes(4),
        "a length of -1": b"\xff" * 4,
        "a length of one": b"\0\0\0\1\0",
        "a length of 2 GiB": b"\x7f\xff\xff\xff",
        "a length above the limit": struct.pack(">i", 104_857_601),
        "an HTTP request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "the beginning of TLS": bytes.fromhex("16030100c8010000c40303"),
        "an unknown key": struct.pack(">ihhih", 10, 5_000, 0, 1, -1),
        "a negative key": struct.pack(">ihhih", 10, -1, 0, 1, -1),
        "a header that is cut off": struct.pack(">ihh", 4, ApiKey.LIST_GROUPS, 0),
        "a client id that is cut off": struct.pack(">ihhih", 10, ApiKey.LIST_GROUPS, 0, 1, 9),
    }.items():
        talk.say(label, data)


@conversation(ApiKey.HEARTBEAT)
def one_after_the_other(talk: Talk) -> None:
    """Requests sent at once are answered in their order."""
    for n in range(3):
        talk.start(f"number {n}", HEARTBEAT)
    for n in range(3):
        talk.finish(f"number {n}")
