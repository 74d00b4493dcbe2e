"""SCRAM credentials: that what is kept proves the password.  What is refused stands in the oracle."""

import hashlib
import hmac
from base64 import b64decode

import pytest

from broker.controller.credentials import alter_credentials
from broker.metadata import replay
from broker.metadata.image import MetadataImage, empty_image
from protocol.error_codes import ErrorCode
from protocol.messages.alter_user_scram_credentials import ScramCredentialDeletion, ScramCredentialUpsertion
from protocol.stored.metadata_records import UserScramCredentialRecord

SHA_256, SHA_512 = 1, 2
ITERATIONS = 4096

SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
PROOF = b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
SERVER_SIGNATURE = b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
AUTH_MESSAGE = (
    b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
)
"""The conversation that RFC 7677 shows: its password is ``pencil``."""

EMPTY = empty_image("cluster")


def upsertion(user: str, mechanism: int = SHA_256) -> ScramCredentialUpsertion:
    name = {SHA_256: "sha256", SHA_512: "sha512"}[mechanism]
    return ScramCredentialUpsertion(
        name=user,
        mechanism=mechanism,
        iterations=ITERATIONS,
        salt=SALT,
        salted_password=hashlib.pbkdf2_hmac(name, b"pencil", SALT, ITERATIONS),
    )


def credentials_after(
    before: MetadataImage, *changes: ScramCredentialDeletion | ScramCredentialUpsertion
) -> MetadataImage:
    deletions = [change for change in changes if isinstance(change, ScramCredentialDeletion)]
    upsertions = [change for change in changes if isinstance(change, ScramCredentialUpsertion)]
    records = [record for record, _ in alter_credentials(before, deletions, upsertions).records]
    image, _ = replay.apply(before, records, offset=before.offset + len(records), epoch=1)
    return image


def test_the_kept_keys_accept_the_proof_of_the_rfc_s_client_and_sign_for_it() -> None:
    ((record, version),) = alter_credentials(EMPTY, [], [upsertion("user")]).records
    assert isinstance(record, UserScramCredentialRecord)
    assert (version, record.salt, record.iterations) == (0, SALT, ITERATIONS)
    signature = hmac.digest(record.stored_key, AUTH_MESSAGE, "sha256")
    client_key = bytes(one ^ other for one, other in zip(PROOF, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == record.stored_key
    assert hmac.digest(record.server_key, AUTH_MESSAGE, "sha256") == SERVER_SIGNATURE


@pytest.mark.parametrize(("mechanism", "length"), [(SHA_256, 32), (SHA_512, 64)])
def test_keys_are_as_long_as_the_hash(mechanism: int, length: int) -> None:
    image = credentials_after(EMPTY, upsertion("user", mechanism))
    credential = image.scram_credentials["user", mechanism]
    assert (len(credential.stored_key), len(credential.server_key)) == (length, length)


def test_a_mechanism_is_taken_away_alone() -> None:
    image = credentials_after(EMPTY, upsertion("user"))
    image = credentials_after(image, upsertion("user", SHA_512))
    image = credentials_after(image, ScramCredentialDeletion(name="user", mechanism=SHA_256))
    assert list(image.scram_credentials) == [("user", SHA_512)]


def test_whoever_is_named_twice_is_not_altered_but_others_are() -> None:
    changes = [upsertion("user"), upsertion("user", SHA_512), upsertion("other")]
    assert list(credentials_after(EMPTY, *changes).scram_credentials) == [("other", SHA_256)]


def test_nobody_is_given_an_empty_salted_password() -> None:
    empty, good = upsertion("a"), upsertion("b")
    empty.salted_password = b""
    records, outcomes = alter_credentials(EMPTY, [], [empty, good])
    assert [getattr(record, "name", None) for record, _ in records] == ["b"]
    refusal = outcomes["a"]
    assert refusal is not None
    assert (refusal.code, refusal.message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert outcomes["b"] is None
    twice = alter_credentials(EMPTY, [], [empty, empty]).reply["a"]
    assert twice is not None
    assert twice.code == ErrorCode.DUPLICATE_RESOURCE
