"""The driver of Spring Kafka; ``compat.scenarios.python.driver`` says how it is called."""

from compat.scenarios.python.driver import Repertoire, end, run
from compat.spring.catalogue import spring_catalogue
from compat.spring.plays import plays
from compat.spring.program import running_applications
from compat.spring.scene import SpringKafka


def main() -> int:
    with running_applications() as applications:
        repertoire = Repertoire(spring_catalogue().scenarios, plays(applications))
        return run(SpringKafka(applications.version), None, repertoire)


if __name__ == "__main__":
    end(main())
