"""The recording covers what is served, and says of the rest why not."""

import pytest

from compat.oracle import empty_cells
from compat.oracle.apis import COVERED, UNANNOUNCED, api_of
from compat.oracle.conversations import CONVERSATIONS
from compat.oracle.grid import make_grid
from compat.oracle.outcomes import SUCCESS
from compat.oracle.recording import Recording
from compat.probe import split_address
from protocol.api_keys import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.support.raw_client import RawClient


def test_every_api_that_is_announced_is_covered_in_every_version(compared_address: str) -> None:
    with RawClient(split_address(compared_address)) as client:
        announced = client.ask(ApiVersionsRequest(), ApiVersionsResponse, 0).api_keys
    covered = {
        api.key: (api.versions[0], api.versions[-1])
        for api in map(api_of, COVERED)
        if api.key not in UNANNOUNCED
    }
    covered[ApiKey.PRODUCE] = (0, covered[ApiKey.PRODUCE][1])  # announced for the sake of old clients
    assert {row.api_key: (row.min_version, row.max_version) for row in announced} == covered


def test_every_conversation_is_recorded(recording: Recording) -> None:
    recorded = {(place.subject, place.conversation) for place in recording}
    assert recorded == {(each.subject, each.name) for each in CONVERSATIONS}
    assert len(recorded) == len(CONVERSATIONS)


def test_every_api_succeeds_in_every_version(recording: Recording) -> None:
    """Unless Kafka itself cannot do it as it is recorded, and somebody has said why."""
    grid = make_grid(recording)
    assert [cell for cell in grid.unreasoned() if cell.result == SUCCESS] == []


def test_every_empty_cell_has_a_reason(recording: Recording) -> None:
    grid = make_grid(recording)
    assert grid.unreasoned() == []
    assert grid.stale_reasons() == []


def test_the_grid_shows_a_hole(recording: Recording) -> None:
    """What is not recorded leaves a cell empty, and nobody has said why."""
    holed = {
        place: told
        for place, told in recording.items()
        if not (told.api == "IncrementalAlterConfigs" and told.version == 1)
    }
    found = {cell.result for cell in make_grid(holed).unreasoned()}
    assert {SUCCESS, "UNKNOWN_TOPIC_OR_PARTITION"} <= found


def test_a_reason_must_have_an_empty_cell(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(empty_cells.EMPTY, ("Heartbeat", "UNKNOWN_MEMBER_ID"), {"0-4": "it is never given"})
    assert make_grid(recording).stale_reasons() == ["Heartbeat UNKNOWN_MEMBER_ID 0-4"]
