"""``python -m compat.damaged``: what Kafka, and what Ottla, makes of damaged log directories.

record    keep what Apache Kafka does (Java needed); read the diff
compare   hold Ottla against it; what differs for a reason is in ``differences``
"""

import sys
import tempfile
from pathlib import Path

from compat.damaged import runs
from compat.damaged.differences import reason_for
from compat.oracle.jars import KafkaMissing


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="ottla-damaged-") as folder:
        match sys.argv[1:]:
            case ["record"]:
                try:
                    runs.write(runs.examine(Path(folder), runs.Kafka))
                except KafkaMissing as missing:
                    print(missing, file=sys.stderr)
                    return 1
            case ["compare"]:
                found = runs.differences(runs.read(), runs.examine(Path(folder), runs.Ottla))
                unexplained = [each for each in found if reason_for(each.damage, each.fact) is None]
                print("\n".join(map(str, unexplained)) or "no difference without a reason")
                return 1 if unexplained else 0
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
