"""The driver of an old kafka-python, for the Python of ``environment``.

``compat.scenarios.python.driver`` says how it is called.
"""

import importlib
import sys


def use_new_six() -> None:
    """Let kafka-python use the package six: the copy inside it cannot be imported since Python 3.12."""
    six = importlib.import_module("six")
    sys.modules["kafka.vendor.six"] = six
    sys.modules["kafka.vendor.six.moves"] = six.moves


if __name__ == "__main__":
    use_new_six()

    from compat.python_kafka_python_old.client import OldKafkaPython
    from compat.scenarios.python.driver import main

    main(OldKafkaPython())
