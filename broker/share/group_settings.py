"""The settings of share groups: a group's own, and the broker's where it has none."""

from typing import TYPE_CHECKING, Any, Final

from broker.config.definitions import ConfigError, Scope, definition
from broker.metadata.image import ResourceType
from broker.share.partition import ShareSettings

if TYPE_CHECKING:
    from broker.services import Services

DEAD_LETTER_QUEUE_LEVEL: Final = 2
"""Of share.version, from which on groups may have a dead letter queue."""


def group_setting(services: "Services", group_id: str, name: str) -> Any:
    """The effective value of a group's setting.

    What was set by a broker with other bounds and is not valid here counts as not set.
    """
    known = definition(Scope.GROUP, name)
    text = services.image.config(ResourceType.GROUP, group_id).get(name)
    if text is not None:
        try:
            return known.parse(text)
        except ConfigError:
            pass
    return services.config.get(known.synonyms[0][0]) if known.synonyms else known.default


def share_settings(services: "Services", group_id: str) -> ShareSettings:
    """What the records of a share group go by."""
    return ShareSettings(
        record_lock_duration_ms=group_setting(services, group_id, "share.record.lock.duration.ms"),
        delivery_count_limit=group_setting(services, group_id, "share.delivery.count.limit"),
        record_locks_max=group_setting(services, group_id, "share.partition.max.record.locks"),
        renew_is_enabled=group_setting(services, group_id, "share.renew.acknowledge.enable"),
    )
