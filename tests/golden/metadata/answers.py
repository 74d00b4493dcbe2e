"""Answers in a short form that can be read and compared: what is not at its default, and no chance values."""

from collections.abc import MutableMapping
from typing import Any

from protocol.messages.api_versions import ApiVersionsResponse
from protocol.messages.delete_topics import DeleteTopicsResponse
from protocol.messages.describe_topic_partitions import DescribeTopicPartitionsResponse
from protocol.schema import Message, Struct
from protocol.uuids import ZERO_UUID

ORDERED = (DescribeTopicPartitionsResponse,)
"""Answers whose order is promised; that of the others comes from hash tables."""

OF_THE_PLACE = ("cluster_id", "host", "port")
"""Fields that say where the broker ran."""


def brief_answer(answer: Message) -> Any:
    """The answer without what differs from one run to the next."""
    if isinstance(answer, ApiVersionsResponse):
        # Which APIs are served is the table's affair, and so are the lowest levels understood.
        return {
            "error_code": answer.error_code,
            "has_keys": bool(answer.api_keys),
            "supported": sorted([key.name, key.max_version] for key in answer.supported_features),
            "finalized": sorted(
                [key.name, key.min_version_level, key.max_version_level] for key in answer.finalized_features
            ),
            "has_epoch": answer.finalized_features_epoch >= 0,
        }
    return _brief(answer, ordered=isinstance(answer, ORDERED))


def note_ids(answer: Message, ids: MutableMapping[str, bytes]) -> None:
    """Remember the id of each topic that an answer names."""
    topics = answer.responses if isinstance(answer, DeleteTopicsResponse) else getattr(answer, "topics", ())
    for topic in topics:
        if getattr(topic, "topic_id", ZERO_UUID) != ZERO_UUID and topic.name:
            ids[topic.name] = topic.topic_id


def _brief(struct: Struct, *, ordered: bool) -> dict[str, Any]:
    brief: dict[str, Any] = {}
    for field in struct.declared_fields:
        value = getattr(struct, field.name)
        if field.name in OF_THE_PLACE:
            continue
        if field.name == "configs" and value:
            brief["configs"] = f"{len(value)} settings"
        elif isinstance(value, Struct):
            brief[field.name] = _brief(value, ordered=ordered)
        elif isinstance(value, list) and value and isinstance(value[0], Struct):
            rows = [_brief(row, ordered=ordered) for row in value]
            brief[field.name] = rows if ordered else sorted(rows, key=_key)
        elif isinstance(value, bytes):
            if value != ZERO_UUID:
                brief[field.name] = "an id"
        elif isinstance(value, list):
            if value:
                brief[field.name] = list(value)
        elif value != field.default:
            brief[field.name] = value
    return brief


def _key(row: dict[str, Any]) -> str:
    return f"{row.get('name')} {row.get('partition_index')} {row.get('node_id')} {row.get('error_code')}"
