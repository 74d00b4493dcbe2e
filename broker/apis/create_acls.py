"""CreateAcls (30): new access control entries.  Without an authorizer nobody would look at them."""

from broker.apis.security_off import NO_AUTHORIZER, check_words
from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


def handle(request: CreateAclsRequest, call: Call) -> CreateAclsResponse:
    for creation in request.creations:
        check_words(
            "CreateAcls",
            creation.resource_type,
            creation.resource_pattern_type,
            creation.operation,
            creation.permission_type,
        )
    return respond(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)


def respond(request: CreateAclsRequest, code: ErrorCode, message: str | None) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[AclCreationResult(error_code=code, error_message=message) for _ in request.creations]
    )


def error_response(request: CreateAclsRequest, code: ErrorCode) -> CreateAclsResponse:
    return respond(request, code, None)
