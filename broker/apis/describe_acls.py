"""DescribeAcls (29): which access control entries there are.  Without an authorizer that cannot be asked."""

from broker.apis.security_off import check_words
from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def handle(request: DescribeAclsRequest, call: Call) -> DescribeAclsResponse:
    check_words(
        "DescribeAcls",
        request.resource_type_filter,
        request.pattern_type_filter,
        request.operation,
        request.permission_type,
    )
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured on the broker"
    )


def error_response(request: DescribeAclsRequest, code: ErrorCode) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=code)
