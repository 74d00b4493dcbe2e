"""The settings of share groups: a group's own, and the broker's where it has none."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from broker.config.definitions import Scope, definition
from broker.metadata.features import DEAD_LETTERS_SHARE_VERSION, SHARE_VERSION
from broker.metadata.image import ResourceType
from broker.share.partition import ShareSettings

if TYPE_CHECKING:
    from broker.config.broker_config import BrokerConfig
    from broker.services import Services


def effective(config: "BrokerConfig", overrides: Mapping[str, str], name: str) -> Any:
    """A group's setting, given those that were made for it alone."""
    if overrides:
        return config.group(overrides)[name]
    known = definition(Scope.GROUP, name)
    return config.get(known.synonyms[0][0]) if known.synonyms else known.default


def group_setting(services: "Services", group_id: str, name: str) -> Any:
    """The effective value of a group's setting."""
    return effective(services.config, services.image.config(ResourceType.GROUP, group_id), name)


def share_settings(services: "Services", group_id: str) -> ShareSettings:
    """What the records of a share group go by."""
    return ShareSettings(
        record_lock_duration_ms=group_setting(services, group_id, "share.record.lock.duration.ms"),
        delivery_count_limit=group_setting(services, group_id, "share.delivery.count.limit"),
        record_locks_max=group_setting(services, group_id, "share.partition.max.record.locks"),
        renew_is_enabled=group_setting(services, group_id, "share.renew.acknowledge.enable"),
        has_dead_letter_queue=(
            services.image.features.get(SHARE_VERSION, 0) >= DEAD_LETTERS_SHARE_VERSION
            and bool(group_setting(services, group_id, "errors.deadletterqueue.topic.name"))
        ),
    )
