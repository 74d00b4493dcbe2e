"""``python -m compat.matrix``: play the scenarios, keep the results, print the tables."""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path

from compat.matrix import results, tables
from compat.matrix.drivers import DRIVERS, Driver
from compat.matrix.run import kafka_address, ottla_address, run_drivers, run_on_brokers
from compat.oracle.jars import KafkaMissing
from compat.scenarios.missing import ClientMissing
from compat.scenarios.outcome import FAILED, PASSED


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m compat.matrix", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    printing = actions.add_parser("print", help="the README's table, from the committed results")
    printing.add_argument("--all", action="store_true", help="every scenario")
    refreshing = actions.add_parser("refresh", help="play against both brokers, write results and tables")
    playing = actions.add_parser("play", help="play and say what came out, without writing anything")
    playing.add_argument("--bootstrap", help="host:port of a broker; one of ours is started if left out")
    playing.add_argument(
        "--scenarios", nargs="+", choices=scenario_names(), metavar="NAME", help="only these"
    )
    carrying = actions.add_parser("round-trips", help="many records, every codec, idempotent and not")
    carrying.add_argument("--bootstrap", help="host:port of a broker; one of ours is started if left out")
    carrying.add_argument("--records", type=int, default=100_000, help="in each round (%(default)s)")
    for action in (refreshing, playing):
        action.add_argument("--clients", nargs="+", choices=DRIVERS, metavar="NAME", help="only these")
    options = parser.parse_args()
    try:
        match options.action:
            case "print":
                rows = results.load()
                print(tables.everything(rows) if options.all else tables.summary(rows))
                return 0
            case "refresh":
                return refresh(chosen(options.clients))
            case "play":
                return play(chosen(options.clients), options.bootstrap, options.scenarios)
            case _:
                return round_trips(options.bootstrap, options.records)
    except (ClientMissing, KafkaMissing) as missing:
        print(missing, file=sys.stderr)
        return 1


def scenario_names() -> set[str]:
    """Of all lists."""
    return {name for driver in DRIVERS.values() for name in driver.catalogue().scenarios}


def chosen(clients: Sequence[str] | None) -> list[Driver]:
    return [DRIVERS[client] for client in clients or DRIVERS]


def refresh(drivers: Sequence[Driver]) -> int:
    """Play everything against both brokers; 1 if something passes against Apache Kafka alone."""
    played = {}
    for broker, start in (("Apache Kafka", kafka_address), ("Ottla", ottla_address)):
        began = time.monotonic()
        played[broker] = run_on_brokers(drivers, start)
        print(f"{broker}: {time.monotonic() - began:.0f} s", flush=True)
    rows = results.load()
    for driver in drivers:
        of_kafka, of_ottla = (played[broker][driver.client] for broker in ("Apache Kafka", "Ottla"))
        rows[driver.client] = results.make_row(driver.client, of_kafka, of_ottla)
    results.save(rows)
    rows = results.load()
    tables.write(rows)
    found = [bug for row in rows.values() for bug in results.bugs(row)]
    print(tables.summary(rows), *found, sep="\n")
    return 1 if found else 0


def play(drivers: Sequence[Driver], bootstrap: str | None, names: Sequence[str] | None) -> int:
    if bootstrap is None:
        outcomes = run_on_brokers(drivers, ottla_address, names)
    else:
        outcomes = run_drivers(drivers, bootstrap, names)
    failed = 0
    for by_name in outcomes.values():
        for outcome in by_name.values():
            failed += outcome.result == FAILED
            why = "" if outcome.result == PASSED else f"  {outcome.reason}"
            print(
                f"{outcome.client:20} {outcome.scenario:26} {outcome.result:12} {outcome.seconds:6.2f} s{why}"
            )
    return 1 if failed else 0


def round_trips(bootstrap: str | None, count: int) -> int:
    """Many records through every client of this environment, with every codec, idempotent and not."""
    from compat.python_clients import CLIENTS
    from compat.scenarios.python.client import CODECS
    from compat.scenarios.python.records import sample_records
    from compat.scenarios.python.round_trip import round_trip

    sent = sample_records(count)
    failed = 0
    with given_or_own(bootstrap) as address:
        for client, codec, idempotent in product(CLIENTS.values(), CODECS, (False, True)):
            began = time.monotonic()
            found = round_trip(client, address, sent, codec=codec, idempotent=idempotent)
            failed += bool(found)
            kind = "idempotent" if idempotent else "plain"
            verdict = "; ".join(found) or "all records came back"
            seconds = time.monotonic() - began
            print(f"{client.name:16} {codec:7} {kind:11} {seconds:7.1f} s  {verdict}", flush=True)
    return 1 if failed else 0


@contextmanager
def given_or_own(bootstrap: str | None) -> Iterator[str]:
    """The address given, or that of a broker of our own."""
    if bootstrap is not None:
        yield bootstrap
        return
    with tempfile.TemporaryDirectory() as folder, ottla_address(Path(folder), {}) as address:
        yield address


if __name__ == "__main__":
    sys.exit(main())
