"""DescribeUserScramCredentials (50): who has a SCRAM password, by which mechanisms (KIP-554)."""

from collections import Counter

from broker.metadata.image import MetadataImage
from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def handle(request: DescribeUserScramCredentialsRequest, call: Call) -> DescribeUserScramCredentialsResponse:
    """To name nobody is to ask for all who have one."""
    if call.listener.is_controller:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka's announces this API, and has no handler
    known = credentials_by_user(call.services.image)
    asked = Counter(user.name for user in request.users) if request.users else Counter(known.keys())
    return DescribeUserScramCredentialsResponse(
        results=[describe(user, known.get(user), times) for user, times in asked.items()]
    )


def credentials_by_user(image: MetadataImage) -> dict[str, list[CredentialInfo]]:
    users: dict[str, list[CredentialInfo]] = {}
    for (user, mechanism), credential in image.scram_credentials.items():
        info = CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
        users.setdefault(user, []).append(info)
    return users


def describe(
    user: str, credentials: list[CredentialInfo] | None, times: int
) -> DescribeUserScramCredentialsResult:
    if times > 1:
        return DescribeUserScramCredentialsResult(
            user=user,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message="Cannot describe SCRAM credentials for the same user twice in a single request: "
            + user,
        )
    if credentials is None:
        return DescribeUserScramCredentialsResult(
            user=user,
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message=f"Attempt to describe a user credential that does not exist: {user}",
        )
    return DescribeUserScramCredentialsResult(user=user, credential_infos=credentials)


def error_response(
    request: DescribeUserScramCredentialsRequest, code: ErrorCode
) -> DescribeUserScramCredentialsResponse:
    """Kafka puts the code above the results, and as often among them as users were named, without names."""
    return DescribeUserScramCredentialsResponse(
        error_code=code,
        error_message=None,
        results=[
            DescribeUserScramCredentialsResult(error_code=code, error_message=None)
            for _ in request.users or ()
        ],
    )
