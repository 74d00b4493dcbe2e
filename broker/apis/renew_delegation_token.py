"""RenewDelegationToken (39): refused like the making of tokens: see ``create_delegation_token``."""

from broker.apis.security_off import NO_TIME_MS
from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse


def handle(request: RenewDelegationTokenRequest, call: Call) -> RenewDelegationTokenResponse:
    return error_response(request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def error_response(request: RenewDelegationTokenRequest, code: ErrorCode) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NO_TIME_MS)
