"""Random lives of quotas: who has which limit, what is used, and what our ledgers say to it."""

import random
from typing import Any

import trio
from trio.testing import MockClock

from broker.quotas.desk import now_ms
from broker.quotas.holders import Limits
from broker.quotas.ledgers import Ledger
from broker.quotas.mutations import MutationQuota
from broker.quotas.rates import Rate, TokenBucket, Windows
from protocol.errors import KafkaError

JsonObject = dict[str, Any]
Step = list[Any]

USERS = ("alice", "bob")
CLIENTS = ("one", "two", "")
STEPS_MAX = 80
AGES_MS = 10_000_000
"""So long that everything is forgotten."""


def random_history(chance: random.Random) -> JsonObject:
    """Windows, and steps.

    Kafka also counts what those use who have no limit, and we do not: when the entities change that have one,
    ages pass.
    """
    limits: dict[tuple[str | None, str | None], float] = {}
    steps: list[Step] = []
    for _ in range(chance.randint(10, STEPS_MAX)):
        if not limits or chance.random() < 0.1:
            entity = chance.choice((*USERS, None, "")), chance.choice((*CLIENTS, None))
            if entity == ("", ""):
                continue
            limit = None if chance.random() < 0.2 else chance.choice((1.0, 3.0, 7.5, 100.0, 1e6, 2.5e9))
            if (entity in limits) is (limit is None) or not limits:
                steps.append(["wait", AGES_MS])
            if limit is None:
                limits.pop(entity, None)
            else:
                limits[entity] = limit
            steps.append(["limit", *entity, limit])
            continue
        steps.append(["wait", chance.choice((0, 0, 1, chance.randrange(1500), chance.randrange(20_000)))])
        who = [chance.choice(USERS), chance.choice(CLIENTS)]
        size = chance.choice(list(limits.values()) or [1.0]) * chance.random() * chance.choice((0.5, 2, 30))
        match chance.randrange(8):
            case 0:
                steps.append(["most", *who])
            case 1:
                steps += [["use", *who, size], ["take back", *who, size]]
            case 2 | 3:
                steps.append(["strictly", *who, float(chance.randint(1, 20))])
            case 4:
                steps.append(["leniently", *who, float(chance.randint(1, 20))])
            case _:
                steps.append(["use", *who, size])
    return {
        "samples": chance.choice((1, 2, 3, 11)),
        "size_seconds": chance.choice((1, 1, 2, 5)),
        "steps": steps,
    }


def play(history: JsonObject) -> list[Any]:
    """What our ledgers say to each step."""
    return trio.run(_play, history, clock=MockClock())


async def _play(history: JsonObject) -> list[Any]:
    windows = Windows(history["samples"], history["size_seconds"] * 1000)
    game = _Game(windows)
    return [await game.take(step) for step in history["steps"]]


class _Game:
    def __init__(self, windows: Windows) -> None:
        self.limits: dict[tuple[str | None, str | None], float] = {}
        self.rates = Ledger(windows, Rate)
        self.mutations = Ledger(windows, TokenBucket)

    async def take(self, step: Step) -> Any:
        what, *rest = step
        now = now_ms()
        match what:
            case "wait":
                clock = trio.lowlevel.current_clock()
                assert isinstance(clock, MockClock)
                clock.jump(rest[0] / 1000)
                return None
            case "limit":
                user, client_id, limit = rest
                self.limits.pop((user, client_id), None)
                if limit is not None:
                    self.limits[user, client_id] = limit
                for ledger in (self.rates, self.mutations):
                    ledger.apply(Limits(self._entities()))
                return None
            case "use" | "take back":
                account = self.rates.account(rest[0], rest[1], now)
                if account is not None:
                    account.used.record(rest[2] if what == "use" else -rest[2], now)
                if what == "take back":
                    return None
                return 0 if account is None else account.used.throttle_ms(account.limit, now)
            case "most":
                limit = self.rates.limit(*rest)
                if limit is None:
                    return 2**31 - 1
                samples, size_ms = self.rates.windows
                return min(int(limit * (samples - 1) * (size_ms // 1000)), 2**31 - 1)
        quota = MutationQuota(
            None, self.mutations.account(rest[0], rest[1], now), is_strict=what == "strictly"
        )
        try:
            quota.take(int(rest[2]))
        except KafkaError:
            return [True, quota.throttle_ms]
        return [False, quota.throttle_ms]

    def _entities(self) -> list[tuple[tuple[tuple[str, str | None], ...], float]]:
        entities = []
        for (user, client_id), limit in self.limits.items():
            parts = (("client-id", client_id), ("user", user))
            entities.append((tuple(part for part in parts if part[1] != ""), limit))
        return entities
