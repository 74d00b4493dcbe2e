"""The broker's one source of randomness.  A seed makes every identifier of a run repeatable."""

import random

from protocol.uuids import is_reserved, uuid_to_text


class Identifiers:
    """Draws ids the way Kafka draws them.

    Without a seed they come from the operating system and cannot be guessed.  ``random`` is the generator
    itself, for callers that choose rather than name: where to start placing replicas, how long to back off.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.random: random.Random = random.SystemRandom() if seed is None else random.Random(seed)

    def uuid(self) -> bytes:
        """A random (version 4) UUID for topics, directories, clusters and incarnations, as 16 bytes.

        Never a reserved one, and never one whose text begins with a dash, which command lines take for an
        option.
        """
        while True:
            value = self._version_4()
            if not is_reserved(value) and not uuid_to_text(value).startswith("-"):
                return value

    def uuid_text(self) -> str:
        """The same as the 22 characters that Kafka's files and tools show."""
        return uuid_to_text(self.uuid())

    def dashed_uuid(self) -> str:
        """A UUID as Java prints it (8-4-4-4-12 hexadecimal digits), which is what member ids end in."""
        digits = self._version_4().hex()
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def member_id(self, prefix: str) -> str:
        """The id of a classic group's member: its client id or instance id, a dash, and a UUID."""
        return f"{prefix}-{self.dashed_uuid()}"

    def fetch_session_id(self) -> int:
        """A positive int32; 0 means "no session" on the wire."""
        return self.random.randint(1, 2**31 - 1)

    def _version_4(self) -> bytes:
        number = self.random.getrandbits(128)
        number = number & ~(0xF << 76) | 0x4 << 76
        number = number & ~(0x3 << 62) | 0x2 << 62
        return number.to_bytes(16, "big")
