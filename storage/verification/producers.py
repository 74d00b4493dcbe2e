"""Compares producer snapshots with what the batches of a log say of their producers."""

from collections.abc import Iterator

from storage.producer_state import NO_EPOCH, NO_TRANSACTION, ProducerEntry, ProducerState


def differences(
    stored: list[ProducerEntry],
    seen: ProducerState,
    offset: int,
    *,
    first_offset: int,
    is_lenient: bool,
) -> Iterator[str]:
    """What a snapshot at ``offset`` says of producers that the log below does not.

    ``first_offset`` is where the log begins.  ``is_lenient`` means that batches may be gone: by compaction,
    or because they cannot be read.  That a producer is missing is no difference unless it has a transaction
    open: brokers forget those that have been idle.
    """
    named = set()
    for entry in stored:
        producer_id = entry.producer_id
        if producer_id in named:
            yield f"producer {producer_id} stands in it twice"
        named.add(producer_id)
        last = entry.batches[-1] if entry.batches else None
        if last is not None and last.last_offset >= offset:
            yield f"the last batch of producer {producer_id} ends at {last.last_offset}"
            continue
        if entry.transaction_start >= offset:
            yield f"a transaction of producer {producer_id} begins at {entry.transaction_start}"
            continue
        if is_lenient:
            continue
        known = seen.entries.get(producer_id)
        if known is not None:
            yield from _differences(entry, known, first_offset)
        elif last is not None and last.last_offset >= first_offset:
            yield f"it names a batch of producer {producer_id} that ends at {last.last_offset}; there is none"
    for known in seen.entries.values():
        if not is_lenient and known.producer_id not in named and known.transaction_start != NO_TRANSACTION:
            yield (
                f"the transaction of producer {known.producer_id}, "
                f"open since offset {known.transaction_start}, is missing"
            )


def _differences(entry: ProducerEntry, known: ProducerEntry, first_offset: int) -> Iterator[str]:
    who = f"producer {entry.producer_id}"
    if entry.producer_epoch != known.producer_epoch:
        yield f"{who} has epoch {entry.producer_epoch}, by its batches {known.producer_epoch}"
        return
    last, known_last = (each.batches[-1] if each.batches else None for each in (entry, known))
    if last is not None and known_last is not None:
        if last[:4] != known_last[:4]:
            yield (
                f"the last batch of {who} has offsets {last.base_offset} to {last.last_offset} and sequences "
                f"{last.first_sequence} to {last.last_sequence}, that in the log {known_last.base_offset} to "
                f"{known_last.last_offset} and {known_last.first_sequence} to {known_last.last_sequence}"
            )
    elif known_last is not None:
        yield f"no batch of {who} is named, but one ends at offset {known_last.last_offset}"
    elif last is not None and last.last_offset >= first_offset:
        yield f"the last batch of {who} ends at {last.last_offset}, but there is none"
    if entry.last_timestamp != known.last_timestamp:
        yield f"{who} wrote last at {entry.last_timestamp}, by its batches at {known.last_timestamp}"
    # Whoever was forgotten and came back has no coordinator's epoch any more.
    if entry.coordinator_epoch not in (known.coordinator_epoch, NO_EPOCH) and (
        known.coordinator_epoch != NO_EPOCH or first_offset == 0
    ):
        yield (
            f"{who} has coordinator epoch {entry.coordinator_epoch}, by its markers {known.coordinator_epoch}"
        )
    start = entry.transaction_start
    if start != known.transaction_start and not NO_TRANSACTION < start < first_offset:
        yield (
            f"the transaction of {who} is open since {start}, by its batches since "
            f"{known.transaction_start} ({NO_TRANSACTION} is none)"
        )
