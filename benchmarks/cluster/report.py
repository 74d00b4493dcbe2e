"""README's block of figures of clusters, printed from the newest results."""

from benchmarks.peers import results
from benchmarks.storage import report

FOLDER = results.FOLDER / "cluster"
BEGIN = "<!-- clusters' figures: printed by `python -m benchmarks cluster --readme` -->"
END = "<!-- end of clusters' figures -->"


def update_readme() -> None:
    """Raises SystemExit if there are no results."""
    report.update_readme(FOLDER, BEGIN, END)
