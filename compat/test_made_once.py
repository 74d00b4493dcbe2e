"""Whatever is made once is made once, by however many at the same time."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from compat.made_once import made_once

AT_ONCE = 4


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_several_want_it_and_one_makes_it(kind: str, tmp_path: Path) -> None:
    wanted = tmp_path / "cache" / "thing"
    together = Barrier(AT_ONCE)
    made: list[Path] = []

    def make(place: Path) -> None:
        made.append(place)
        assert not wanted.exists()
        if kind == "folder":
            place.mkdir()
        else:
            place.write_text("content")

    def want(_: int) -> Path:
        together.wait()
        return made_once(wanted, make)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        assert set(threads.map(want, range(AT_ONCE))) == {wanted}
    assert len(made) == 1
    assert wanted.exists()
    assert not made[0].exists()


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_was_not_finished_is_not_there(kind: str, tmp_path: Path) -> None:
    wanted = tmp_path / "thing"

    def make_half(place: Path) -> None:
        if kind == "folder":
            (place / "inside").mkdir(parents=True)
        else:
            place.write_text("half")
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        made_once(wanted, make_half)
    assert [path.name for path in tmp_path.iterdir()] == ["thing.lock"]
    made_once(wanted, lambda place: place.mkdir())
    assert wanted.is_dir()
