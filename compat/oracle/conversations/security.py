"""What is asked of security by clients of a broker that has none: ACLs, tokens, passwords and SASL."""

from compat.oracle.conversation import conversation
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from protocol.messages.create_acls import AclCreation, CreateAclsRequest
from protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from protocol.messages.describe_acls import DescribeAclsRequest
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest

ANY, TOPIC, GROUP, CLUSTER, USER = 1, 2, 3, 4, 7
ANY_PATTERN, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
ANY_OPERATION, ALL_OPERATIONS, READ = 1, 2, 3
ANY_PERMISSION, DENY, ALLOW = 1, 2, 3
SCRAM_SHA_256, SCRAM_SHA_512 = 1, 2


def acls(
    kind: int = TOPIC,
    name: str | None = "t",
    pattern: int = LITERAL,
    operation: int = READ,
    permission: int = ALLOW,
) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=kind,
        resource_name_filter=name,
        pattern_type_filter=pattern,
        principal_filter=None,
        host_filter=None,
        operation=operation,
        permission_type=permission,
    )


def creation(
    kind: int = TOPIC,
    name: str = "t",
    pattern: int = LITERAL,
    principal: str = "User:one",
    operation: int = READ,
    permission: int = ALLOW,
) -> AclCreation:
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=permission,
    )


def filter_of(kind: int = TOPIC, pattern: int = LITERAL, operation: int = READ) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=kind,
        resource_name_filter="t",
        pattern_type_filter=pattern,
        principal_filter=None,
        host_filter=None,
        operation=operation,
        permission_type=ALLOW,
    )


@conversation(ApiKey.DESCRIBE_ACLS)
def listing_acls(talk: Talk) -> None:
    talk.ask("of a topic", acls())
    talk.ask("of anything", acls(ANY, None, ANY_PATTERN, ANY_OPERATION, ANY_PERMISSION))
    talk.ask("with a pattern", acls(pattern=PREFIXED))
    talk.ask("that match", acls(pattern=MATCH))
    for kind in (0, 8, -1):
        talk.ask(f"of a resource of type {kind}", acls(kind))
    for pattern in (0, 5):
        talk.ask(f"with pattern type {pattern}", acls(pattern=pattern))
    for operation in (0, 16):
        talk.ask(f"for operation {operation}", acls(operation=operation))
    for permission in (0, 4):
        talk.ask(f"with permission type {permission}", acls(permission=permission))
    talk.ask("after all that", acls())


@conversation(ApiKey.CREATE_ACLS)
def making_acls(talk: Talk) -> None:
    talk.ask("one", CreateAclsRequest(creations=[creation()]))
    talk.ask("several", CreateAclsRequest(creations=[creation(), creation(GROUP), creation(CLUSTER, "")]))
    talk.ask("none", CreateAclsRequest())
    talk.ask("of a prefix", CreateAclsRequest(creations=[creation(pattern=PREFIXED)]))
    for kind in (0, ANY, 8):
        talk.ask(f"of a resource of type {kind}", CreateAclsRequest(creations=[creation(kind)]))
    for pattern in (0, ANY_PATTERN, MATCH, 5):
        talk.ask(f"with pattern type {pattern}", CreateAclsRequest(creations=[creation(pattern=pattern)]))
    for operation in (0, ANY_OPERATION, 16):
        talk.ask(f"for operation {operation}", CreateAclsRequest(creations=[creation(operation=operation)]))
    for permission in (0, ANY_PERMISSION, 4):
        one = creation(permission=permission)
        talk.ask(f"with permission type {permission}", CreateAclsRequest(creations=[one]))
    talk.ask("for nobody", CreateAclsRequest(creations=[creation(principal="")]))
    talk.ask("for a nameless kind of user", CreateAclsRequest(creations=[creation(principal="one")]))
    talk.ask("one good, one bad", CreateAclsRequest(creations=[creation(), creation(0)]))
    talk.ask("after all that", CreateAclsRequest(creations=[creation()]))


@conversation(ApiKey.DELETE_ACLS)
def deleting_acls(talk: Talk) -> None:
    talk.ask("one", DeleteAclsRequest(filters=[filter_of()]))
    talk.ask("two", DeleteAclsRequest(filters=[filter_of(), filter_of(GROUP)]))
    talk.ask("none", DeleteAclsRequest())
    talk.ask("that match", DeleteAclsRequest(filters=[filter_of(pattern=MATCH)]))
    for kind in (0, 8):
        talk.ask(f"of a resource of type {kind}", DeleteAclsRequest(filters=[filter_of(kind)]))
    for pattern in (0, 5):
        talk.ask(f"with pattern type {pattern}", DeleteAclsRequest(filters=[filter_of(pattern=pattern)]))
    for operation in (0, 16):
        talk.ask(f"for operation {operation}", DeleteAclsRequest(filters=[filter_of(operation=operation)]))
    talk.ask("after all that", DeleteAclsRequest(filters=[filter_of()]))


@conversation(
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
)
def tokens(talk: Talk) -> None:
    renewer = CreatableRenewers(principal_type="User", principal_name="one")
    talk.ask("make", CreateDelegationTokenRequest(max_lifetime_ms=-1))
    talk.ask("make, renewable", CreateDelegationTokenRequest(renewers=[renewer], max_lifetime_ms=1000))
    talk.ask(
        "make, for another",
        CreateDelegationTokenRequest(
            owner_principal_type="User", owner_principal_name="two", max_lifetime_ms=1000
        ),
    )
    for kind, name in (("User", None), (None, "two"), (None, None), ("", "two"), ("User", "")):
        talk.ask(
            f"make, for {name!r} of type {kind!r}",
            CreateDelegationTokenRequest(
                owner_principal_type=kind, owner_principal_name=name, max_lifetime_ms=1000
            ),
        )
    odd = CreatableRenewers(principal_type="", principal_name="")
    talk.ask("make, renewable by nobody", CreateDelegationTokenRequest(renewers=[odd], max_lifetime_ms=-1))
    talk.ask("renew", RenewDelegationTokenRequest(hmac=b"token", renew_period_ms=1000))
    talk.ask("expire", ExpireDelegationTokenRequest(hmac=b"token", expiry_time_period_ms=-1))
    talk.ask("describe all", DescribeDelegationTokenRequest(owners=None))
    talk.ask("describe none", DescribeDelegationTokenRequest())
    owner = DescribeDelegationTokenOwner(principal_type="User", principal_name="one")
    talk.ask("describe those of one", DescribeDelegationTokenRequest(owners=[owner]))


@conversation(ApiKey.SASL_HANDSHAKE)
def shaking_hands(talk: Talk) -> None:
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "GSSAPI", "another", ""):
        talk.ask(f"as {mechanism!r}", SaslHandshakeRequest(mechanism=mechanism))
    talk.ask("the connection goes on", DescribeClusterRequest())


@conversation(ApiKey.SASL_AUTHENTICATE)
def authenticating(talk: Talk) -> None:
    talk.ask("with a password", SaslAuthenticateRequest(auth_bytes=b"\0one\0secret"))
    talk.ask("with nothing", SaslAuthenticateRequest())
    talk.ask("the connection goes on", DescribeClusterRequest())


def alter(*changes: ScramCredentialDeletion | ScramCredentialUpsertion) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        deletions=[change for change in changes if isinstance(change, ScramCredentialDeletion)],
        upsertions=[change for change in changes if isinstance(change, ScramCredentialUpsertion)],
    )


def upsertion(user: str, mechanism: int = SCRAM_SHA_256, iterations: int = 4096) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"p" * 32
    )


def deletion(user: str, mechanism: int = SCRAM_SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=user, mechanism=mechanism)


def credentials(*users: str) -> DescribeUserScramCredentialsRequest:
    return DescribeUserScramCredentialsRequest(users=[UserName(name=user) for user in users])


@conversation(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, alone=True)
def passwords(talk: Talk) -> None:
    one, two, nobody = (talk.name(name) for name in ("one", "two", "nobody"))
    talk.ask("everybody's", DescribeUserScramCredentialsRequest(users=None))
    talk.ask("also everybody's", credentials())
    talk.ask("of one who has none", credentials(nobody))
    talk.ask("of one who is named twice", credentials(nobody, nobody))
    talk.ask("of one without a name", credentials(""))
    talk.ask("change nothing", alter())
    talk.ask("give one", alter(upsertion(one)))
    talk.settle()
    talk.ask("it is there", credentials(one))
    talk.ask("give another mechanism, and to another", alter(upsertion(one, SCRAM_SHA_512), upsertion(two)))
    talk.settle()
    talk.ask("all are there", credentials(one, two, nobody))
    talk.ask("everybody who has one", DescribeUserScramCredentialsRequest(users=None))
    talk.ask("more iterations", alter(upsertion(one, iterations=8192)))
    talk.settle()
    talk.ask("they are more", credentials(one))
    for iterations in (4095, 16_384, 16_385, 0, -1):
        talk.ask(f"{iterations} iterations", alter(upsertion(one, iterations=iterations)))
    for mechanism in (0, 3, -1):
        talk.ask(f"mechanism {mechanism}", alter(upsertion(one, mechanism)))
        talk.ask(f"no mechanism {mechanism} any more", alter(deletion(one, mechanism)))
    talk.ask("few iterations of SHA-512", alter(upsertion(one, SCRAM_SHA_512, 4095)))
    talk.ask("for nobody", alter(upsertion("")))
    talk.ask("from nobody", alter(deletion("")))
    talk.ask("take what is not there", alter(deletion(nobody)))
    talk.ask("take another mechanism", alter(deletion(two, SCRAM_SHA_512)))
    talk.ask("give and take the same", alter(deletion(one), upsertion(one)))
    talk.ask("give twice", alter(upsertion(one), upsertion(one)))
    talk.ask("take twice", alter(deletion(one), deletion(one)))
    talk.ask("give one mechanism, take the other", alter(deletion(one), upsertion(one, SCRAM_SHA_512)))
    talk.settle()
    talk.ask("one is left", credentials(one))
    talk.ask("first good, then bad for the same", alter(deletion(two), upsertion(two, iterations=1)))
    talk.ask("first bad, then good for the same", alter(deletion(two, SCRAM_SHA_512), upsertion(two)))
    talk.ask("twice bad for the same", alter(deletion(nobody), upsertion(nobody, 9), upsertion(nobody)))
    talk.ask("three times the same", alter(deletion(two), upsertion(two), upsertion(two)))
    talk.ask("nobody, by no mechanism", alter(deletion("", 9), upsertion("", 9)))
    talk.ask("no mechanism, and few iterations", alter(upsertion(two, 9, 1)))
    talk.ask("one good, one bad", alter(deletion(two), deletion(nobody)))
    talk.settle()
    talk.ask("the good one is done", credentials(two))
    talk.ask("take the last", alter(deletion(one, SCRAM_SHA_512)))
    talk.settle()
    talk.ask("nothing is left", credentials(one, two))
