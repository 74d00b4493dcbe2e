"""Which APIs are served, in which versions, where: the only list of them.

ApiVersions answers from this table.  A module is named as text and imported with its API's first
request, so that the port opens early.  ``protocol.messages`` has a module of the same name.
"""

from typing import Final, NamedTuple

from protocol.api_keys import ApiKey


class Api(NamedTuple):
    """One API as this broker serves it."""

    key: ApiKey
    module: str
    """Name of the module in ``protocol.messages``, and normally of the one that answers."""
    handler: str
    """Name of the module in ``broker.apis`` that answers on the brokers' listeners."""
    controller_handler: str
    """Likewise on the controllers' listeners, where Fetch is about another log."""
    first: int
    last: int
    """The versions served, both inclusive."""
    announced_from: int
    """First version that ApiVersions names; differs from ``first`` for Produce alone."""
    unstable_from: int
    """Versions from here on need ``unstable.api.versions.enable``."""
    is_announced: bool
    """Whether ApiVersions tells of it; the others are answered all the same."""
    on_broker: bool
    on_controller: bool
    is_forwardable: bool
    """Whether a broker passes a client's request on to the controller (KIP-590)."""
    may_overlap: bool
    """Whether a request may start while an earlier one of this API on the connection is unanswered."""


def _api(
    key: ApiKey,
    first: int,
    last: int,
    *,
    announced_from: int | None = None,
    unstable_from: int = 32_767,
    is_announced: bool = True,
    on_broker: bool = True,
    on_controller: bool = False,
    is_forwardable: bool = False,
    may_overlap: bool = False,
    controller_handler: str | None = None,
) -> Api:
    return Api(
        key=key,
        module=key.name.lower(),
        handler=key.name.lower(),
        controller_handler=controller_handler or key.name.lower(),
        first=first,
        last=last,
        announced_from=first if announced_from is None else announced_from,
        unstable_from=unstable_from,
        is_announced=is_announced,
        on_broker=on_broker,
        on_controller=on_controller,
        is_forwardable=is_forwardable,
        may_overlap=may_overlap,
    )


def _forwardable(key: ApiKey, first: int, last: int) -> Api:
    """A client's wish that only the controller can carry out: brokers pass it on."""
    return _api(key, first, last, on_controller=True, is_forwardable=True)


def _inner(key: ApiKey, first: int, last: int) -> Api:
    """What brokers and controllers ask the controller, and clients never see."""
    return _api(key, first, last, on_broker=False, on_controller=True)


APIS: Final[dict[int, Api]] = {
    api.key: api
    for api in (
        # librdkafka stops compressing when Produce is announced from a later version than 0.
        _api(ApiKey.PRODUCE, 3, 13, announced_from=0, may_overlap=True),
        _api(ApiKey.FETCH, 4, 18, on_controller=True, controller_handler="fetch_metadata"),
        _api(ApiKey.LIST_OFFSETS, 1, 11),
        _api(ApiKey.METADATA, 0, 13),
        _api(ApiKey.OFFSET_COMMIT, 2, 10),
        _api(ApiKey.OFFSET_FETCH, 1, 10),
        _api(ApiKey.FIND_COORDINATOR, 0, 6),
        _api(ApiKey.JOIN_GROUP, 0, 9),
        _api(ApiKey.HEARTBEAT, 0, 4),
        _api(ApiKey.LEAVE_GROUP, 0, 5),
        _api(ApiKey.SYNC_GROUP, 0, 5),
        _api(ApiKey.DESCRIBE_GROUPS, 0, 6),
        _api(ApiKey.LIST_GROUPS, 0, 5),
        _api(ApiKey.SASL_HANDSHAKE, 0, 1, on_controller=True),
        _api(ApiKey.API_VERSIONS, 0, 5, on_controller=True),
        _forwardable(ApiKey.CREATE_TOPICS, 2, 7),
        _forwardable(ApiKey.DELETE_TOPICS, 1, 6),
        _api(ApiKey.DELETE_RECORDS, 0, 2),
        _api(ApiKey.INIT_PRODUCER_ID, 0, 6, unstable_from=6),
        _api(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4),
        _api(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5),
        _api(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4),
        _api(ApiKey.END_TXN, 0, 5),
        _api(ApiKey.WRITE_TXN_MARKERS, 1, 2),
        _api(ApiKey.TXN_OFFSET_COMMIT, 0, 6),
        _api(ApiKey.DESCRIBE_ACLS, 1, 3, on_controller=True),
        _forwardable(ApiKey.CREATE_ACLS, 1, 3),
        _forwardable(ApiKey.DELETE_ACLS, 1, 3),
        _api(ApiKey.DESCRIBE_CONFIGS, 1, 4, on_controller=True),
        _forwardable(ApiKey.ALTER_CONFIGS, 0, 2),
        _api(ApiKey.ALTER_REPLICA_LOG_DIRS, 1, 2),
        _api(ApiKey.DESCRIBE_LOG_DIRS, 1, 5),
        _api(ApiKey.SASL_AUTHENTICATE, 0, 2, on_controller=True),
        _forwardable(ApiKey.CREATE_PARTITIONS, 0, 3),
        _forwardable(ApiKey.CREATE_DELEGATION_TOKEN, 1, 3),
        _forwardable(ApiKey.RENEW_DELEGATION_TOKEN, 1, 2),
        _forwardable(ApiKey.EXPIRE_DELEGATION_TOKEN, 1, 2),
        _api(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, 3, on_controller=True),
        _api(ApiKey.DELETE_GROUPS, 0, 3),
        _forwardable(ApiKey.ELECT_LEADERS, 0, 2),
        _forwardable(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1),
        _forwardable(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1),
        _forwardable(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0),
        _api(ApiKey.OFFSET_DELETE, 0, 0),
        _api(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1),
        _forwardable(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1),
        _api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, on_controller=True),
        _forwardable(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0),
        _inner(ApiKey.VOTE, 0, 2),
        _inner(ApiKey.BEGIN_QUORUM_EPOCH, 0, 1),
        _inner(ApiKey.END_QUORUM_EPOCH, 0, 1),
        _forwardable(ApiKey.DESCRIBE_QUORUM, 0, 2),
        _inner(ApiKey.ALTER_PARTITION, 2, 3),
        _forwardable(ApiKey.UPDATE_FEATURES, 0, 2),
        _inner(ApiKey.ENVELOPE, 0, 0),
        _inner(ApiKey.FETCH_SNAPSHOT, 0, 1),
        _api(ApiKey.DESCRIBE_CLUSTER, 0, 2, on_controller=True),
        _api(ApiKey.DESCRIBE_PRODUCERS, 0, 0),
        _inner(ApiKey.BROKER_REGISTRATION, 0, 4),
        _inner(ApiKey.BROKER_HEARTBEAT, 0, 2),
        _forwardable(ApiKey.UNREGISTER_BROKER, 0, 0),
        _api(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0),
        _api(ApiKey.LIST_TRANSACTIONS, 0, 2),
        _inner(ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0),
        _api(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1),
        _api(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1),
        _inner(ApiKey.CONTROLLER_REGISTRATION, 0, 0),
        # As in Kafka, clients are not asked for metrics that nobody receives.
        _api(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, 0, is_announced=False),
        _api(ApiKey.PUSH_TELEMETRY, 0, 0, is_announced=False),
        _inner(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, 0),
        _api(ApiKey.LIST_CONFIG_RESOURCES, 0, 1),
        _api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0),
        _api(ApiKey.SHARE_GROUP_HEARTBEAT, 1, 1),
        _api(ApiKey.SHARE_GROUP_DESCRIBE, 1, 1),
        _api(ApiKey.SHARE_FETCH, 1, 2),
        _api(ApiKey.SHARE_ACKNOWLEDGE, 1, 2),
        _forwardable(ApiKey.ADD_RAFT_VOTER, 0, 1),
        _forwardable(ApiKey.REMOVE_RAFT_VOTER, 0, 0),
        _inner(ApiKey.UPDATE_RAFT_VOTER, 0, 0),
        _api(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, 0),
        _api(ApiKey.READ_SHARE_GROUP_STATE, 0, 0),
        _api(ApiKey.WRITE_SHARE_GROUP_STATE, 0, 1),
        _api(ApiKey.DELETE_SHARE_GROUP_STATE, 0, 0),
        _api(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 0, 1),
        _api(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, 1),
        _api(ApiKey.STREAMS_GROUP_DESCRIBE, 0, 1),
        _api(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, 1),
        _api(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, 0),
        _api(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, 0),
        _api(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, 0, 0),
        _forwardable(ApiKey.UNREGISTER_CONTROLLER, 0, 0),
    )
}
"""Every API served, by key, in the order of the keys."""


def served(*, on_controller: bool, unstable_versions: bool) -> list[Api]:
    """What a listener serves, with ``last`` lowered where a version is unstable and not enabled."""
    apis = [
        api if unstable_versions else api._replace(last=min(api.last, api.unstable_from - 1))
        for api in APIS.values()
        if (api.on_controller if on_controller else api.on_broker)
    ]
    return [api._replace(handler=api.controller_handler) for api in apis] if on_controller else apis
