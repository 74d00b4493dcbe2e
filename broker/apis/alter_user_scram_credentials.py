"""AlterUserScramCredentials (51): give users SCRAM passwords, and take them away (KIP-554)."""

from broker.controller.credentials import alter_credentials
from broker.controller.decision import Decision
from broker.metadata.image import MetadataImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

Outcomes = dict[str, KafkaError | None]


def handle(
    request: AlterUserScramCredentialsRequest, call: Call
) -> Waiting[AlterUserScramCredentialsResponse] | AlterUserScramCredentialsResponse:
    def command(image: MetadataImage) -> Decision[Outcomes]:
        return alter_credentials(image, request.deletions, request.upsertions)

    def build(outcome: Outcomes | KafkaError) -> AlterUserScramCredentialsResponse:
        return respond(
            dict.fromkeys(users_of(request), outcome) if isinstance(outcome, KafkaError) else outcome
        )

    timeout_ms = call.services.config.get("request.timeout.ms")
    return call.services.controller.answer(command, build, timeout_ms=timeout_ms)


def users_of(request: AlterUserScramCredentialsRequest) -> list[str]:
    return sorted(
        {change.name for change in request.deletions} | {change.name for change in request.upsertions}
    )


def respond(outcomes: Outcomes) -> AlterUserScramCredentialsResponse:
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(
                user=user,
                error_code=ErrorCode.NONE if error is None else error.code,
                error_message=None if error is None else error.message,
            )
            for user, error in outcomes.items()
        ]
    )


def error_response(
    request: AlterUserScramCredentialsRequest, code: ErrorCode
) -> AlterUserScramCredentialsResponse:
    return respond({user: KafkaError(code) for user in users_of(request)})
