"""The first records of a log, and the end of what another controller left half done."""

from broker.controller.activation import activate
from broker.metadata.records import VersionedRecord
from broker.raft.batches import read_metadata_batch
from protocol.stored.metadata_records import AbortTransactionRecord, FeatureLevelRecord
from tests.broker.metadata.golden import golden_batches
from tests.broker.metadata.records import features, image_of


def level(name: str, feature_level: int) -> VersionedRecord:
    return FeatureLevelRecord(name=name, feature_level=feature_level), 0


def first_records(log: str) -> list[object]:
    """What Kafka's controller wrote first into a log."""
    batch = next(batch for batch in golden_batches(log) if not batch.is_control)
    return list(read_metadata_batch(batch))


def test_an_empty_log_gets_what_kafka_gives_it() -> None:
    bootstrap = [
        level("metadata.version", 33),
        level("eligible.leader.replicas.version", 1),
        level("group.version", 1),
        level("share.version", 2),
        level("streams.version", 1),
        level("transaction.version", 2),
    ]
    decision = activate(image_of(), in_transaction=False, bootstrap=bootstrap, min_isr=1)
    assert [record for record, _ in decision.records] == first_records("one_node")


def test_without_eligible_leader_replicas_nothing_is_set() -> None:
    bootstrap = [level("metadata.version", 25), level("group.version", 1), level("transaction.version", 2)]
    decision = activate(image_of(), in_transaction=False, bootstrap=bootstrap, min_isr=1)
    assert [record for record, _ in decision.records] == first_records("level_25")


def test_a_log_with_records_gets_none() -> None:
    assert activate(image_of(features()), in_transaction=False, bootstrap=[], min_isr=1).records == []


def test_an_open_transaction_is_aborted() -> None:
    abort = AbortTransactionRecord(reason="Controller failover")
    records = activate(image_of(features()), in_transaction=True, bootstrap=[], min_isr=1).records
    assert [record for record, _ in records] == [abort]
    bootstrap = [level("metadata.version", 33)]
    records = activate(image_of(), in_transaction=True, bootstrap=bootstrap, min_isr=1).records
    assert records[0][0] == abort
    assert len(records) == 4
