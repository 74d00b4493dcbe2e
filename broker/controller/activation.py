"""What a controller appends before anything else when it takes over the log."""

from collections.abc import Sequence
from typing import Final

from broker.controller.decision import Decision
from broker.metadata.image import ELIGIBLE_LEADER_REPLICAS_VERSION, MetadataImage, ResourceType
from broker.metadata.records import VersionedRecord
from protocol.stored.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)

BOOTSTRAP_TRANSACTION: Final = "Bootstrap records"
FAILOVER: Final = "Controller failover"


def activate(
    image: MetadataImage, *, in_transaction: bool, bootstrap: Sequence[VersionedRecord], min_isr: int
) -> Decision[None]:
    """Abort what a dead controller left half done, and give an empty log its first records.

    ``bootstrap`` is what the directory was formatted with.  Where it turns eligible leader replicas on,
    the cluster's ``min.insync.replicas`` gets a record of its own, so that all nodes agree on it.
    """
    records: list[VersionedRecord] = []
    if in_transaction:
        records.append((AbortTransactionRecord(reason=FAILOVER), 0))
    if image.metadata_version == 0:
        records.append((BeginTransactionRecord(name=BOOTSTRAP_TRANSACTION), 0))
        records += bootstrap
        if any(_enables_elr(record) for record in bootstrap):
            setting = ConfigRecord(
                resource_type=ResourceType.BROKER,
                resource_name="",
                name="min.insync.replicas",
                value=str(min_isr),
            )
            records.append((setting, 0))
        records.append((EndTransactionRecord(), 0))
    return Decision(records, None)


def _enables_elr(versioned: VersionedRecord) -> bool:
    record = versioned[0]
    return (
        isinstance(record, FeatureLevelRecord)
        and record.name == ELIGIBLE_LEADER_REPLICAS_VERSION
        and record.feature_level > 0
    )
