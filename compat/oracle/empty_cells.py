"""Why some cells of the grid are empty: results that a version cannot have."""

from typing import Final

NO_INSTANCES = "instances of static members (KIP-345) cannot be named"
NO_IDS = "topics cannot be named by id"
NO_TYPES = "types cannot be named"
NO_BODY = "the request has no body that could be cut off"

EMPTY: Final[dict[tuple[str, str], dict[str, str]]] = {
    ("Produce", "UNKNOWN_TOPIC_ID"): {"3-12": NO_IDS},
    ("Produce", "UNSUPPORTED_COMPRESSION_TYPE"): {"7-13": "every codec is supported"},
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
    ("OffsetFetch", "UNKNOWN_TOPIC_ID"): {"1-9": NO_IDS},
    ("FindCoordinator", "INVALID_REQUEST"): {"0": "there is no key type to be wrong"},
    ("JoinGroup", "FENCED_INSTANCE_ID"): {"0-4": NO_INSTANCES},
    ("JoinGroup", "MEMBER_ID_REQUIRED"): {"0-3": "members join without an id of theirs (before KIP-394)"},
    ("Heartbeat", "FENCED_INSTANCE_ID"): {"0-2": NO_INSTANCES},
    ("LeaveGroup", "FENCED_INSTANCE_ID"): {"0-2": NO_INSTANCES},
    ("SyncGroup", "FENCED_INSTANCE_ID"): {"0-2": NO_INSTANCES},
    ("SyncGroup", "INCONSISTENT_GROUP_PROTOCOL"): {"0-4": "the protocol is not repeated (before KIP-559)"},
    ("DescribeGroups", "GROUP_ID_NOT_FOUND"): {"0-5": "an unknown group is described as dead"},
    ("ListGroups", "closed"): {"0-2": NO_BODY},
    ("ApiVersions", "INVALID_REQUEST"): {"0-2": "clients do not say who they are (before KIP-511)"},
    ("ApiVersions", "REBOOTSTRAP_REQUIRED"): {"0-4": "clients do not say whom they want (before KIP-1242)"},
    ("ApiVersions", "UNSUPPORTED_VERSION"): {"1-5": "the answer to an unknown version is of version 0"},
    ("ApiVersions", "closed"): {"0-2": NO_BODY},
    ("DeleteTopics", "UNKNOWN_TOPIC_ID"): {"1-5": NO_IDS},
    ("DescribeCluster", "MISMATCHED_ENDPOINT_TYPE"): {"0": NO_TYPES},
    ("DescribeCluster", "UNSUPPORTED_ENDPOINT_TYPE"): {"0": NO_TYPES},
    ("ConsumerGroupHeartbeat", "INVALID_REGULAR_EXPRESSION"): {"0": "there are no regular expressions"},
    ("ListConfigResources", "UNSUPPORTED_VERSION"): {"0": NO_TYPES},
}
"""By API and result: versions, and the reason."""
