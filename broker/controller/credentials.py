"""SCRAM passwords of users (KIP-554): what is kept proves a password, and is none (RFC 5802)."""

import hashlib
import hmac
from collections.abc import Iterable
from typing import Final

from broker.controller.decision import Decision
from broker.metadata.image import MetadataImage
from broker.metadata.records import VersionedRecord
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.alter_user_scram_credentials import ScramCredentialDeletion, ScramCredentialUpsertion
from protocol.stored.metadata_records import RemoveUserScramCredentialRecord, UserScramCredentialRecord

HASHES: Final = {1: "sha256", 2: "sha512"}
"""By the numbers that SCRAM's mechanisms have on the wire."""

Change = ScramCredentialDeletion | ScramCredentialUpsertion

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16_384


def alter_credentials(
    image: MetadataImage,
    deletions: Iterable[ScramCredentialDeletion],
    upsertions: Iterable[ScramCredentialUpsertion],
) -> Decision[dict[str, KafkaError | None]]:
    """What becomes of each user; one of them may be refused while others are altered.

    The first mistake about a user counts.  Whoever is named twice is not altered, whatever the mechanisms.
    """
    outcomes: dict[str, KafkaError | None] = {}
    accepted: dict[str, Change] = {}
    changes: list[Change] = [*deletions, *upsertions]
    for change in changes:
        user = change.name
        if outcomes.get(user) is not None:
            continue
        try:
            if user in outcomes:
                raise KafkaError(
                    ErrorCode.DUPLICATE_RESOURCE,
                    "A user credential cannot be altered twice in the same request",
                )
            check(image, change)
        except KafkaError as error:
            outcomes[user] = error
            accepted.pop(user, None)
            continue
        outcomes[user] = None
        accepted[user] = change
    records: list[VersionedRecord] = []
    for user, change in accepted.items():
        if isinstance(change, ScramCredentialUpsertion) and not change.salted_password:
            outcomes[user] = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Java makes no key of nothing
        else:
            records.append((record_of(change), 0))
    return Decision(records, outcomes)


def check(image: MetadataImage, change: Change) -> None:
    """Raises the ``KafkaError`` with which one change is refused."""
    if not change.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in HASHES:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramCredentialDeletion):
        if (change.name, change.mechanism) not in image.scram_credentials:
            raise KafkaError(
                ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
            )
    elif change.iterations < ITERATIONS_MIN:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    elif change.iterations > ITERATIONS_MAX:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")


def record_of(change: Change) -> RemoveUserScramCredentialRecord | UserScramCredentialRecord:
    if isinstance(change, ScramCredentialDeletion):
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    hash_name = HASHES[change.mechanism]
    client_key = hmac.digest(change.salted_password, b"Client Key", hash_name)
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=change.salt,
        stored_key=hashlib.new(hash_name, client_key).digest(),
        server_key=hmac.digest(change.salted_password, b"Server Key", hash_name),
        iterations=change.iterations,
    )
