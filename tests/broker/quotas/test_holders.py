"""Whose quota a client uses: the most specific entity that has one, in Kafka's order."""

import itertools

from broker.metadata.image import QuotaEntity
from broker.quotas.holders import Limits

ENTITIES: tuple[QuotaEntity, ...] = (
    (("client-id", "c"), ("user", "u")),
    (("client-id", None), ("user", "u")),
    (("user", "u"),),
    (("client-id", "c"), ("user", None)),
    (("client-id", None), ("user", None)),
    (("user", None),),
    (("client-id", "c"),),
    (("client-id", None),),
)
"""Those that may limit client c of user u; each goes before those behind it."""


def test_the_most_specific_entity_counts_whichever_others_have_limits() -> None:
    for chosen in itertools.product((False, True), repeat=len(ENTITIES)):
        ranks = [rank for rank, is_limited in enumerate(chosen) if is_limited]
        limits = Limits([(ENTITIES[rank], float(rank)) for rank in ranks])
        assert limits.limit(limits.holder("u", "c")) == (ranks[0] if ranks else None)
        assert bool(limits) is bool(ranks)


def test_clients_of_a_limited_user_share_its_quota_and_others_have_none() -> None:
    limits = Limits([((("user", "u"),), 1.0)])
    assert limits.holder("u", "c") == limits.holder("u", "d")
    assert limits.limit(limits.holder("v", "c")) is None


def test_users_of_a_limited_client_share_its_quota() -> None:
    limits = Limits([((("client-id", None),), 1.0)])
    assert limits.holder("u", "c") == limits.holder("v", "c") != limits.holder("u", "d")


def test_each_client_of_each_user_has_a_default_quota_of_its_own() -> None:
    limits = Limits([((("client-id", None), ("user", None)), 1.0)])
    holders = {limits.holder(user, client) for user in "uv" for client in "cd"}
    assert len(holders) == 4
    assert {limits.limit(holder) for holder in holders} == {1.0}
