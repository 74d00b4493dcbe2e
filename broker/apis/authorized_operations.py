"""What a client may do with a resource, as the bit fields of Metadata, DescribeCluster and their kin."""

from enum import IntEnum
from typing import Final


class Operation(IntEnum):
    """An operation that access control lists speak of; its number is that of the wire and of the bit."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


def bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


# Without an authorizer everybody may do everything.

ALL_ON_TOPIC: Final = bits(
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)

ALL_ON_CLUSTER: Final = bits(
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)

ALL_ON_GROUP: Final = bits(
    Operation.READ,
    Operation.DELETE,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)

NOT_ASKED: Final = -(1 << 31)
"""In the place of authorized operations that nobody wanted to know."""
