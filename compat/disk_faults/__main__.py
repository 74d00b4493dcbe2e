"""``python -m compat.disk_faults``: brokers on a disk that refuses.

record    keep what Apache Kafka does (Java needed); read the diff
compare   hold Ottla against it
"""

import sys
import tempfile
from pathlib import Path

from compat.disk_faults import runs
from compat.oracle.jars import KafkaMissing


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="ottla-disk-faults-") as folder:
        match sys.argv[1:]:
            case ["record"]:
                try:
                    runs.write(runs.run_all(Path(folder), runs.Kafka))
                except KafkaMissing as missing:
                    print(missing, file=sys.stderr)
                    return 1
            case ["compare"]:
                found = runs.differences(runs.read(), runs.run_all(Path(folder), runs.Ottla))
                print("\n".join(found) or "no difference without a reason")
                return 1 if found else 0
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
