"""``python -m benchmarks`` measures one broker, ``python -m benchmarks peers`` measures it beside others.

``python -m benchmarks storage`` measures what files cost, ``python -m benchmarks coordinators`` what groups
and transactions do, and ``python -m benchmarks cluster`` what replication costs.
"""

import sys


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["peers"]:
        from benchmarks.peers.command import main as measure_peers

        return measure_peers(arguments[1:])
    if arguments[:1] == ["storage"]:
        from benchmarks.storage.command import main as measure_storage

        return measure_storage(arguments[1:])
    if arguments[:1] == ["coordinators"]:
        from benchmarks.coordinators.command import main as measure_coordinators

        return measure_coordinators(arguments[1:])
    if arguments[:1] == ["cluster"]:
        from benchmarks.cluster.command import main as measure_cluster

        return measure_cluster(arguments[1:])
    from benchmarks.one_broker import main as measure_one_broker

    return measure_one_broker(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
