"""The virtual environment of the old client."""

from pathlib import Path
from typing import Final

from compat.python_environments import Environment

OLD_KAFKA_PYTHON: Final = Environment("kafka-python", Path(__file__).with_name("requirements.txt"))
