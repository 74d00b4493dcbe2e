"""README's block of figures of coordinators, printed from the newest results."""

from benchmarks.peers import results
from benchmarks.storage import report

FOLDER = results.FOLDER / "coordinators"
BEGIN = "<!-- coordinators' figures: printed by `python -m benchmarks coordinators --readme` -->"
END = "<!-- end of coordinators' figures -->"


def update_readme() -> None:
    """Raises SystemExit if there are no results."""
    report.update_readme(FOLDER, BEGIN, END)
