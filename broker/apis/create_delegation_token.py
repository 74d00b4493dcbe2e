"""CreateDelegationToken (38): refused, because only who has authenticated itself may have tokens (KIP-48)."""

from broker.apis.security_off import ANONYMOUS, NO_TIME_MS, PRINCIPAL_TYPE
from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

FIRST_WITH_REQUESTER = 3
"""The version since which tokens can be made for others."""


def handle(request: CreateDelegationTokenRequest, call: Call) -> CreateDelegationTokenResponse:
    response = error_response(request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if call.version >= FIRST_WITH_REQUESTER:
        response.token_requester_principal_type = PRINCIPAL_TYPE
        response.token_requester_principal_name = ANONYMOUS
    owner, kind = request.owner_principal_name, request.owner_principal_type
    if owner and kind is None:
        # Kafka stumbles over an owner of no type.
        response.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
    elif owner and kind is not None:
        response.principal_type, response.principal_name = kind, owner
    return response


def error_response(request: CreateDelegationTokenRequest, code: ErrorCode) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=PRINCIPAL_TYPE,
        principal_name=ANONYMOUS,
        issue_timestamp_ms=NO_TIME_MS,
        expiry_timestamp_ms=NO_TIME_MS,
        max_timestamp_ms=NO_TIME_MS,
    )
