"""AlterClientQuotas (49): change the limits that clients have (KIP-546)."""

from collections.abc import Collection, Iterable

from broker.apis.error_texts import fitting
from broker.controller.decision import Decision
from broker.controller.quotas import Alteration, Outcomes, alter_quotas, hosts_of
from broker.metadata.image import MetadataImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.quotas.addresses import UnknownHost, address_of
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
    EntityData,
)

Answer = AlterClientQuotasResponse | Waiting[AlterClientQuotasResponse]


def handle(request: AlterClientQuotasRequest, call: Call) -> Answer:
    alterations = alterations_of(request)
    hosts = hosts_of(alterations)
    if not hosts:
        return alter(request, call, alterations, unknown_hosts=())
    waiting: Waiting[AlterClientQuotasResponse] = Waiting()

    async def look_up_and_alter() -> None:
        unknown_hosts = await call.services.run_blocking(find_unknown, hosts)
        answer = alter(request, call, alterations, unknown_hosts)
        if isinstance(answer, Waiting):
            answer.pass_on(waiting)
        else:
            waiting.answer(answer)

    call.services.partitions.start_soon(look_up_and_alter)
    return waiting


def alterations_of(request: AlterClientQuotasRequest) -> list[Alteration]:
    """What is asked.  Of a type that an entity names twice the last name counts."""
    return [
        Alteration(
            tuple(sorted({part.entity_type: part.entity_name for part in entry.entity}.items())),
            [(change.key, None if change.remove else change.value) for change in entry.ops],
        )
        for entry in request.entries
    ]


def find_unknown(hosts: Iterable[str]) -> set[str]:
    """Those that have no address.  Runs in a thread."""
    unknown = set()
    for host in hosts:
        try:
            address_of(host)
        except UnknownHost:
            unknown.add(host)
    return unknown


def alter(
    request: AlterClientQuotasRequest,
    call: Call,
    alterations: list[Alteration],
    unknown_hosts: Collection[str],
) -> Answer:
    def command(image: MetadataImage) -> Decision[Outcomes]:
        decision = alter_quotas(image, alterations, unknown_hosts)
        return Decision([], decision.reply) if request.validate_only else decision

    def build(outcome: Outcomes | KafkaError) -> AlterClientQuotasResponse:
        if isinstance(outcome, KafkaError):
            return error_response(request, outcome.code)
        return AlterClientQuotasResponse(
            entries=[
                AlterClientQuotasResponseEntryData(
                    error_code=ErrorCode.NONE if error is None else error.code,
                    error_message=None if error is None else fitting(error.message),
                    entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                )
                for entity, error in outcome.items()
            ]
        )

    timeout_ms = call.services.config.get("request.timeout.ms")
    return call.services.controller.answer(command, build, timeout_ms=timeout_ms)


def error_response(request: AlterClientQuotasRequest, code: ErrorCode) -> AlterClientQuotasResponse:
    """An error of the whole request stands with each entity."""
    return AlterClientQuotasResponse(
        entries=[
            AlterClientQuotasResponseEntryData(
                error_code=code, error_message=ERROR_TEXTS.get(code), entity=entry.entity
            )
            for entry in request.entries
        ]
    )


ERROR_TEXTS = {
    ErrorCode.POLICY_VIOLATION: "Request parameters do not satisfy the configured policy.",
    ErrorCode.REQUEST_TIMED_OUT: "The request timed out.",
}
"""Kafka's words for errors of the whole request."""
