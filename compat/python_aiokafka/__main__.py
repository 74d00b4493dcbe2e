"""The driver of aiokafka; ``compat.scenarios.python.driver`` says how it is called."""

from compat.python_aiokafka.client import AioKafka
from compat.scenarios.python.driver import main

if __name__ == "__main__":
    main(AioKafka())
