"""Why some cells of the grid are empty: results that a version cannot have."""

from typing import Final

NO_INSTANCES = "instances of static members (KIP-345) cannot be named"
NO_IDS = "topics cannot be named by id"
NO_MEMBERS = "members do not say who they are (before KIP-848)"
NO_TYPES = "types cannot be named"
NO_FENCED = "a fenced producer is told INVALID_PRODUCER_EPOCH (before KIP-588)"
FENCED = "a fenced producer is told so (KIP-588)"
NO_ABORTABLE = "transactions that have to be aborted are in an invalid state (before KIP-890)"
ADDS = "partitions are added on the way (KIP-890)"
NO_MEMBERS = "members are not named (before KIP-447)"
NO_SASL = "nobody has to authenticate"
NO_TOKENS = "who has not authenticated may have no tokens"
NO_REFUSAL = "what is too much is carried out, and its client waits (before KIP-599)"
NO_BODY = "the request has no body that could be cut off"

EMPTY: Final[dict[tuple[str, str], dict[str, str]]] = {
    ("Produce", "UNKNOWN_TOPIC_ID"): {"3-12": NO_IDS},
    ("Produce", "UNSUPPORTED_COMPRESSION_TYPE"): {"7-13": "every codec is supported"},
    ("Produce", "CONCURRENT_TRANSACTIONS"): {"3-11": "told as NOT_ENOUGH_REPLICAS"},
    ("Produce", "NOT_ENOUGH_REPLICAS"): {"12-13": "told as what it is: CONCURRENT_TRANSACTIONS"},
    ("Produce", "TRANSACTION_ABORTABLE"): {"3-10": NO_ABORTABLE, "12-13": ADDS},
    ("Fetch", "FETCH_SESSION_ID_NOT_FOUND"): {"4-6": "there are no sessions"},
    ("Fetch", "FETCH_SESSION_TOPIC_ID_ERROR"): {"4-6": "there are no sessions"},
    ("Fetch", "INVALID_FETCH_SESSION_EPOCH"): {"4-6": "there are no sessions"},
    ("Fetch", "INCONSISTENT_TOPIC_ID"): {"4-12": NO_IDS},
    ("Fetch", "UNKNOWN_LEADER_EPOCH"): {"4-8": "the current leader epoch cannot be named"},
    ("Fetch", "UNKNOWN_TOPIC_ID"): {"4-12": NO_IDS},
    ("Fetch", "hangs"): {"4-12": NO_IDS},
    ("ListOffsets", "UNKNOWN_LEADER_EPOCH"): {"1-3": "the current leader epoch cannot be named"},
    ("ListOffsets", "UNKNOWN_SERVER_ERROR"): {"1": "there is no isolation level to be wrong"},
    ("Metadata", "INVALID_REQUEST"): {
        "0-9": NO_IDS,
        "12-13": "topics may be named by id, and without a name",
    },
    ("Metadata", "UNKNOWN_SERVER_ERROR"): {"0-11": "a topic without name and id is refused otherwise"},
    ("Metadata", "UNKNOWN_TOPIC_ID"): {"0-11": NO_IDS},
    ("OffsetCommit", "FENCED_INSTANCE_ID"): {"2-6": NO_INSTANCES},
    ("OffsetCommit", "GROUP_ID_NOT_FOUND"): {"2-8": "an unknown group is an illegal generation"},
    ("OffsetCommit", "UNKNOWN_TOPIC_ID"): {"2-9": NO_IDS},
    ("OffsetCommit", "STALE_MEMBER_EPOCH"): {"2-8": "members of consumer groups may not use these"},
    ("OffsetCommit", "UNSUPPORTED_VERSION"): {"9-10": "members of consumer groups may use these"},
    ("OffsetFetch", "STALE_MEMBER_EPOCH"): {"1-8": NO_MEMBERS},
    ("OffsetFetch", "UNKNOWN_MEMBER_ID"): {"1-8": NO_MEMBERS},
    ("OffsetFetch", "UNKNOWN_SERVER_ERROR"): {"1-8": NO_MEMBERS},
    ("OffsetFetch", "UNKNOWN_TOPIC_ID"): {"1-9": NO_IDS},
    ("OffsetFetch", "UNSTABLE_OFFSET_COMMIT"): {"1-6": "what is stable cannot be asked for (before KIP-447)"},
    ("FindCoordinator", "INVALID_REQUEST"): {"0": "there is no key type to be wrong"},
    ("JoinGroup", "FENCED_INSTANCE_ID"): {"0-4": NO_INSTANCES},
    ("JoinGroup", "MEMBER_ID_REQUIRED"): {"0-3": "members join without an id of theirs (before KIP-394)"},
    ("Heartbeat", "FENCED_INSTANCE_ID"): {"0-2": NO_INSTANCES},
    ("LeaveGroup", "FENCED_INSTANCE_ID"): {"0-2": NO_INSTANCES},
    ("SyncGroup", "FENCED_INSTANCE_ID"): {"0-2": NO_INSTANCES},
    ("SyncGroup", "INCONSISTENT_GROUP_PROTOCOL"): {"0-4": "the protocol is not repeated (before KIP-559)"},
    ("DescribeGroups", "GROUP_ID_NOT_FOUND"): {"0-5": "an unknown group is described as dead"},
    ("ListGroups", "closed"): {"0-2": NO_BODY},
    ("SaslHandshake", "success"): {"0-1": NO_SASL},
    ("ApiVersions", "INVALID_REQUEST"): {"0-2": "clients do not say who they are (before KIP-511)"},
    ("ApiVersions", "REBOOTSTRAP_REQUIRED"): {"0-4": "clients do not say whom they want (before KIP-1242)"},
    ("ApiVersions", "UNSUPPORTED_VERSION"): {"1-5": "the answer to an unknown version is of version 0"},
    ("ApiVersions", "closed"): {"0-2": NO_BODY},
    ("CreateTopics", "THROTTLING_QUOTA_EXCEEDED"): {"2-5": NO_REFUSAL},
    ("DeleteTopics", "THROTTLING_QUOTA_EXCEEDED"): {"1-4": NO_REFUSAL},
    ("CreatePartitions", "THROTTLING_QUOTA_EXCEEDED"): {"0-2": NO_REFUSAL},
    ("DeleteTopics", "UNKNOWN_TOPIC_ID"): {"1-5": NO_IDS},
    ("InitProducerId", "INVALID_PRODUCER_EPOCH"): {
        "0-2": "producers do not say who they were (before KIP-360)",
        "4-5": FENCED,
    },
    ("InitProducerId", "PRODUCER_FENCED"): {"0-3": NO_FENCED},
    ("AddPartitionsToTxn", "INVALID_PRODUCER_EPOCH"): {"2-5": FENCED},
    ("AddPartitionsToTxn", "PRODUCER_FENCED"): {"0-1": NO_FENCED},
    ("AddPartitionsToTxn", "TOPIC_AUTHORIZATION_FAILED"): {"4-5": "brokers may add internal topics"},
    ("AddPartitionsToTxn", "TRANSACTION_ABORTABLE"): {"0-3": "nothing is verified (before KIP-890)"},
    ("AddPartitionsToTxn", "hangs"): {"0-3": "a request is of one transaction"},
    ("AddOffsetsToTxn", "INVALID_PRODUCER_EPOCH"): {"2-4": FENCED},
    ("AddOffsetsToTxn", "PRODUCER_FENCED"): {"0-1": NO_FENCED},
    ("EndTxn", "INVALID_PRODUCER_EPOCH"): {"2-5": FENCED},
    ("EndTxn", "PRODUCER_FENCED"): {"0-1": NO_FENCED},
    ("WriteTxnMarkers", "UNKNOWN_SERVER_ERROR"): {"1": "there is no transaction version to be wrong"},
    ("TxnOffsetCommit", "FENCED_INSTANCE_ID"): {"0-2": NO_MEMBERS},
    ("TxnOffsetCommit", "GROUP_ID_NOT_FOUND"): {"0-2": NO_MEMBERS, "3-5": "it is an illegal generation"},
    ("TxnOffsetCommit", "ILLEGAL_GENERATION"): {"0-2": NO_MEMBERS},
    ("TxnOffsetCommit", "INVALID_TXN_STATE"): {"4": "the transaction has to be aborted", "5-6": ADDS},
    ("TxnOffsetCommit", "TRANSACTION_ABORTABLE"): {"0-3": NO_ABORTABLE, "5-6": ADDS},
    ("TxnOffsetCommit", "STALE_MEMBER_EPOCH"): {"0-2": NO_MEMBERS, "3-5": "it is an illegal generation"},
    ("TxnOffsetCommit", "UNKNOWN_MEMBER_ID"): {"0-2": NO_MEMBERS},
    ("TxnOffsetCommit", "UNKNOWN_TOPIC_ID"): {"0-5": NO_IDS},
    ("DescribeAcls", "success"): {"1-3": "there is no authorizer"},
    ("SaslAuthenticate", "success"): {"0-2": NO_SASL},
    ("CreateDelegationToken", "success"): {"1-3": NO_TOKENS},
    ("CreateDelegationToken", "UNKNOWN_SERVER_ERROR"): {"1-2": "owners cannot be named (before KIP-373)"},
    ("RenewDelegationToken", "success"): {"1-2": NO_TOKENS},
    ("ExpireDelegationToken", "success"): {"1-2": NO_TOKENS},
    ("DescribeDelegationToken", "success"): {"1-3": NO_TOKENS},
    ("ElectLeaders", "INVALID_REQUEST"): {"0": NO_TYPES},
    ("UnregisterBroker", "success"): {"0": "there is one broker, and it is needed"},
    ("ListTransactions", "INVALID_REGULAR_EXPRESSION"): {"0-1": "there are no patterns (before KIP-1152)"},
    ("DescribeCluster", "MISMATCHED_ENDPOINT_TYPE"): {"0": NO_TYPES},
    ("DescribeCluster", "UNSUPPORTED_ENDPOINT_TYPE"): {"0": NO_TYPES},
    ("ConsumerGroupHeartbeat", "INVALID_REGULAR_EXPRESSION"): {"0": "there are no regular expressions"},
    ("ListConfigResources", "UNSUPPORTED_VERSION"): {"0": NO_TYPES},
    ("AddRaftVoter", "success"): {"0-1": "no other node has the metadata log"},
    ("RemoveRaftVoter", "success"): {"0": "the only voter stays"},
    ("UnregisterController", "success"): {"0": "the controller that decides stays"},
    ("StreamsGroupTopologyDescriptionUpdate", "success"): {"0": "there is no plugin to take a description"},
}
"""By API and result: versions, and the reason."""
