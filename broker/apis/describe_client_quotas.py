"""DescribeClientQuotas (48): which limits clients have (KIP-546)."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from broker.apis.error_texts import fitting
from broker.metadata.image import QuotaEntity
from broker.network.call import Call
from broker.quotas.keys import CLIENT_ID, IP, USER
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

EXACT: Final = 0
DEFAULT: Final = 1
ANY: Final = 2


class Wanted(NamedTuple):
    """Of which entities the quotas are asked for.

    ``names`` must be theirs (None is the default), and ``kinds`` they must have, whatever the name.  Unless
    ``strict`` they may have more than these.
    """

    names: Mapping[str, str | None]
    kinds: frozenset[str]
    strict: bool

    def fits(self, entity: QuotaEntity) -> bool:
        parts = dict(entity)
        if self.strict and len(parts) != len(self.names) + len(self.kinds):
            return False
        return self.kinds <= parts.keys() and all(
            kind in parts and parts[kind] == name for kind, name in self.names.items()
        )


def handle(request: DescribeClientQuotasRequest, call: Call) -> DescribeClientQuotasResponse:
    try:
        wanted = wanted_by(request)
    except KafkaError as error:
        return DescribeClientQuotasResponse(
            error_code=error.code, error_message=fitting(error.message), entries=None
        )
    return DescribeClientQuotasResponse(
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[ValueData(key=key, value=value) for key, value in quotas.items()],
            )
            for entity, quotas in call.services.image.quotas.items()
            if wanted.fits(entity)
        ]
    )


def wanted_by(request: DescribeClientQuotasRequest) -> Wanted:
    """The request's filter; raises the ``KafkaError`` of the first thing that is wrong with it."""
    names: dict[str, str | None] = {}
    kinds: set[str] = set()
    for component in request.components:
        kind = component.entity_type
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in names or kind in kinds:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in (IP, USER, CLIENT_ID):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        _check_match(component)
        if component.match_type == ANY:
            kinds.add(kind)
        else:
            names[kind] = component.match
    named = names.keys() | kinds
    if IP in named and len(named) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with "
            "user or clientId filter component."
        )
    return Wanted(names, frozenset(kinds), request.strict)


def _check_match(component: ComponentData) -> None:
    if component.match_type == EXACT:
        if component.match is None:
            raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
    elif component.match_type in (DEFAULT, ANY):
        if component.match is not None:
            word = "DEFAULT" if component.match_type == DEFAULT else "SPECIFIED"
            raise _invalid(f"Request specified MATCH_TYPE_{word}, but also specified a match string.")
    else:
        raise _invalid(f"Unknown match type {component.match_type}")


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)


def error_response(request: DescribeClientQuotasRequest, code: ErrorCode) -> DescribeClientQuotasResponse:
    """Without entries, which is not the same as none."""
    return DescribeClientQuotasResponse(error_code=code, error_message=None, entries=None)
