"""SaslHandshake (17): which mechanism shall authenticate.  A listener without SASL has no use for any."""

from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(request: SaslHandshakeRequest, call: Call) -> SaslHandshakeResponse:
    return error_response(request, ErrorCode.ILLEGAL_SASL_STATE)


def error_response(request: SaslHandshakeRequest, code: ErrorCode) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=code)
