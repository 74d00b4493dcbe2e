from benchmarks.peers import binaries
from benchmarks.peers.brokers import kfake_version


def test_kfake_is_named_after_the_day_of_its_commit() -> None:
    go_mod = "require github.com/twmb/franz-go/pkg/kfake v0.0.0-20260918054303-01f206a7e32c\n"
    assert kfake_version(go_mod) == "of 2026-09-18 (01f206a)"
    assert kfake_version("module nothing\n") == "unknown"


def test_the_pinned_kfake_is_recognised() -> None:
    assert kfake_version((binaries.HERE / "kfake" / "go.mod").read_text()) != "unknown"
