"""Put on a broker's path as ``sitecustomize``: notes what was imported when its ready file appeared."""

import os
import sys

READY_FILE = os.environ["OTTLA_TEST_READY_FILE"]
IMPORTED_FILE = os.environ["OTTLA_TEST_IMPORTED_FILE"]


def note(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook: the ready file is put in place by a rename."""
    if event == "os.rename" and str(arguments[1]) == READY_FILE:
        with open(IMPORTED_FILE, "w") as file:
            file.write("\n".join(sorted(sys.modules)))


sys.addaudithook(note)
