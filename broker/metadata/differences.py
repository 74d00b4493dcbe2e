"""What one image says differently from another, when nobody has followed the records between them.

So it is where a snapshot of the leader's jumps over records, and where another node takes the lead.
"""

from collections.abc import Mapping
from typing import Any

from broker.metadata.image import MetadataImage
from broker.metadata.replay import MetadataChanges


def differences(before: MetadataImage, after: MetadataImage) -> MetadataChanges:
    """The changes that lead from ``before`` to ``after``."""
    changes = MetadataChanges()
    for topic_id, topic in after.topics_by_id.items():
        known = before.topics_by_id.get(topic_id)
        if known is not topic and known != topic:
            changes.topics[topic_id] = topic
    for topic_id, topic in before.topics_by_id.items():
        if topic_id not in after.topics_by_id:
            changes.deleted_topics[topic_id] = topic
    for name in ("brokers", "configs", "controllers", "features", "quotas"):
        getattr(changes, name).update(_changed_keys(getattr(before, name), getattr(after, name)))
    return changes


def _changed_keys(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> set[Any]:
    if before is after:
        return set()
    changed = {key for key, value in after.items() if key not in before or before[key] != value}
    return changed | (before.keys() - after.keys())
