from storage.leader_epochs import LeaderEpochs


def test_assigning_drops_what_contradicts() -> None:
    epochs = LeaderEpochs()
    assert epochs.latest == -1
    epochs.assign(0, 0)
    epochs.assign(2, 100)
    epochs.assign(2, 150)
    epochs.assign(-1, 200)
    assert list(epochs.entries) == [(0, 0), (2, 100)]
    epochs.assign(3, 100)
    assert list(epochs.entries) == [(0, 0), (3, 100)], "an epoch without records leaves no trace"
    epochs.assign(1, 50)
    assert list(epochs.entries) == [(0, 0), (1, 50)]
    epochs.assign(1, 40)
    assert list(epochs.entries) == [(0, 0), (1, 40)]
    assert epochs.latest == 1


def test_end_offsets() -> None:
    epochs = LeaderEpochs([(1, 10), (3, 30), (5, 50)])
    log_end = 70
    assert epochs.end_offset_for(5, log_end) == (5, 70)
    assert epochs.end_offset_for(3, log_end) == (3, 50)
    assert epochs.end_offset_for(4, log_end) == (3, 50)
    assert epochs.end_offset_for(1, log_end) == (1, 30)
    assert epochs.end_offset_for(0, log_end) == (0, 10), "older than all: where the first one starts"
    assert epochs.end_offset_for(6, log_end) == (-1, -1)
    assert epochs.end_offset_for(-1, log_end) == (-1, -1)
    assert LeaderEpochs().end_offset_for(0, log_end) == (-1, -1)


def test_the_epoch_of_a_record() -> None:
    epochs = LeaderEpochs([(1, 10), (3, 30)])
    assert [epochs.epoch_at(offset) for offset in (9, 10, 29, 30, 99)] == [-1, 1, 1, 3, 3]


def test_truncating_the_end() -> None:
    epochs = LeaderEpochs([(1, 10), (3, 30), (5, 50)])
    epochs.truncate_from_end(51)
    changes = [epochs.changed]
    epochs.truncate_from_end(50)
    changes.append(epochs.changed)
    assert changes == [False, True]
    assert list(epochs.entries) == [(1, 10), (3, 30)]
    assert epochs.latest == 3
    epochs.truncate_from_end(0)
    assert list(epochs.entries) == []
    assert epochs.latest == -1


def test_truncating_the_start() -> None:
    epochs = LeaderEpochs([(1, 10), (3, 30), (5, 50)])
    epochs.truncate_from_start(10)
    assert not epochs.changed
    epochs.truncate_from_start(35)
    assert list(epochs.entries) == [(3, 35), (5, 50)]
    epochs.truncate_from_start(50)
    assert list(epochs.entries) == [(5, 50)]
    epochs.truncate_from_start(70)
    assert list(epochs.entries) == [(5, 70)]
    assert epochs.latest == 5


def test_clearing() -> None:
    epochs = LeaderEpochs([(1, 10)])
    assert not epochs.changed
    epochs.clear()
    assert (len(epochs), epochs.latest, epochs.changed) == (0, -1, True)
