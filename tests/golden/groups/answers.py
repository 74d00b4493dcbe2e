"""Answers about groups in a short form: what is not at its default, with names in the place of ids."""

import re
from typing import Any, TypeVar

from protocol.messages.join_group import JoinGroupResponse
from protocol.schema import Message, Struct
from protocol.uuids import ZERO_UUID

OF_THE_PLACE = ("host", "port", "node_id")
"""Fields that say where the broker ran; of nowhere, they are kept."""

_UUID = re.compile(r"^(.*)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.DOTALL)


S = TypeVar("S", bound=Struct)

TOPIC_ID = b"<id of topic t>".ljust(16)
"""Stands for it in requests; a member's id is written there as its name in angle brackets."""


class Names:
    """What the steps call members and topics, and what the broker calls them."""

    def __init__(self) -> None:
        self._real: dict[str, str] = {}
        self._topic_ids: dict[str, bytes] = {}
        self._shown: dict[str, str] = {}

    def fill_in(self, struct: S) -> S:
        """``struct`` with ids in the place of names."""
        values = {field.name: self._fill_in(getattr(struct, field.name)) for field in struct.declared_fields}
        return type(struct)(**values)

    def _fill_in(self, value: Any) -> Any:
        if isinstance(value, Struct):
            return self.fill_in(value)
        if isinstance(value, list):
            return [self._fill_in(entry) for entry in value]
        if value == TOPIC_ID:
            return self._topic_ids["t"]
        if isinstance(value, str) and value.startswith("<"):
            return self._real[value.strip("<>")]
        return value

    def note_topic(self, topic: str, topic_id: bytes) -> None:
        self._topic_ids[topic] = topic_id

    def note_member(self, answer: Message, name: str) -> None:
        """``name`` is the member that ``answer`` introduces; nobody is, if it is empty."""
        if name:
            assert isinstance(answer, JoinGroupResponse)
            form = _UUID.match(answer.member_id)
            prefix = form.group(1) if form else "no UUID behind "
            self._real[name] = answer.member_id
            self._shown[answer.member_id] = f"{prefix}-<{name}>"

    def brief(self, struct: Struct) -> dict[str, Any]:
        """``struct`` without what differs from one run to the next."""
        brief: dict[str, Any] = {}
        for field in struct.declared_fields:
            value = getattr(struct, field.name)
            if field.name in OF_THE_PLACE and value not in ("", -1, 0):
                continue
            shown = self._show(value)
            if isinstance(value, list) and value and isinstance(value[0], Struct):
                # Their order comes from hash tables.
                brief[field.name] = sorted(shown, key=str)
            elif shown != [] and value != field.default:
                brief[field.name] = shown
        return brief

    def _show(self, value: Any) -> Any:
        if isinstance(value, Struct):
            return self.brief(value)
        if isinstance(value, list):
            return [self._show(entry) for entry in value]
        if isinstance(value, str):
            return self._shown.get(value) or _UUID.sub(r"\1-<no name yet>", value)
        if isinstance(value, bytes):
            for topic, topic_id in self._topic_ids.items():
                if value == topic_id != ZERO_UUID:
                    return f"<{topic}>"
            return value.decode("latin-1")
        return value
