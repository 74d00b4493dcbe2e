"""SaslAuthenticate (36): a step of an authentication.  Without SASL everybody counts as authenticated."""

from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(request: SaslAuthenticateRequest, call: Call) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )


def error_response(request: SaslAuthenticateRequest, code: ErrorCode) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=code)
