"""ExpireDelegationToken (40): refused like the making of tokens: see ``create_delegation_token``."""

from broker.apis.security_off import NO_TIME_MS
from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


def handle(request: ExpireDelegationTokenRequest, call: Call) -> ExpireDelegationTokenResponse:
    return error_response(request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def error_response(request: ExpireDelegationTokenRequest, code: ErrorCode) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NO_TIME_MS)
