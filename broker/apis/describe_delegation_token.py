"""DescribeDelegationToken (41): refused like the making of tokens: see ``create_delegation_token``."""

from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def handle(request: DescribeDelegationTokenRequest, call: Call) -> DescribeDelegationTokenResponse:
    if call.listener.is_controller:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka's announces this API, and has no handler
    return error_response(request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def error_response(
    request: DescribeDelegationTokenRequest, code: ErrorCode
) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=code)
