"""DeleteAcls (31): remove access control entries.  Without an authorizer there are none."""

from broker.apis.security_off import NO_AUTHORIZER, check_words
from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse


def handle(request: DeleteAclsRequest, call: Call) -> DeleteAclsResponse:
    for wanted in request.filters:
        check_words(
            "DeleteAcls",
            wanted.resource_type_filter,
            wanted.pattern_type_filter,
            wanted.operation,
            wanted.permission_type,
        )
    return respond(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)


def respond(request: DeleteAclsRequest, code: ErrorCode, message: str | None) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_code=code, error_message=message) for _ in request.filters
        ]
    )


def error_response(request: DeleteAclsRequest, code: ErrorCode) -> DeleteAclsResponse:
    return respond(request, code, None)
