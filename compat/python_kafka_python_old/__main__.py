"""The driver of an old kafka-python, run by the Python of ``environment``.

``compat.scenarios.python.driver`` says how it is called.
"""

from compat.python_kafka_python_old.client import OldKafkaPython
from compat.scenarios.python.driver import main

if __name__ == "__main__":
    main(OldKafkaPython())
