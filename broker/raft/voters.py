"""Who votes in the metadata quorum: one controller, or two while one hands over to the other."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from protocol.stored.control_records import VotersRecord

KRAFT_VERSIONS: Final = (0, 1)
"""The lowest and highest kraft.version that a voter here supports."""


class VoterEndpoint(NamedTuple):
    """Where a voter's controller listens."""

    name: str
    host: str
    port: int


class Voter(NamedTuple):
    """One voter.  ``directory_id`` is that of the directory with its metadata log (KIP-853)."""

    id: int
    directory_id: bytes
    endpoints: tuple[VoterEndpoint, ...]
    kraft_versions: tuple[int, int] = KRAFT_VERSIONS


VoterSet = tuple[Voter, ...]


def find_voter(voters: VoterSet, voter_id: int, directory_id: bytes) -> Voter | None:
    """The voter that is this node with this directory."""
    for voter in voters:
        if voter.id == voter_id and voter.directory_id == directory_id:
            return voter
    return None


def replace_voter(voters: VoterSet, changed: Voter) -> VoterSet:
    """The set with ``changed`` in the place of the voter that has its id and directory."""
    return tuple(
        changed if (voter.id, voter.directory_id) == (changed.id, changed.directory_id) else voter
        for voter in voters
    )


def voters_record(voters: Iterable[Voter]) -> "VotersRecord":
    """The control record that makes ``voters`` the voter set."""
    from protocol.stored.control_records import Endpoint, KRaftVersionFeature, VotersRecord, VotersVoter

    return VotersRecord(
        voters=[
            VotersVoter(
                voter_id=voter.id,
                voter_directory_id=voter.directory_id,
                endpoints=[Endpoint(name=name, host=host, port=port) for name, host, port in voter.endpoints],
                kraft_version_feature=KRaftVersionFeature(
                    min_supported_version=voter.kraft_versions[0],
                    max_supported_version=voter.kraft_versions[1],
                ),
            )
            for voter in voters
        ]
    )


def read_voters(record: "VotersRecord") -> VoterSet:
    """The voter set that a control record names."""
    return tuple(
        Voter(
            voter.voter_id,
            voter.voter_directory_id,
            _endpoints((endpoint.name, endpoint.host, endpoint.port) for endpoint in voter.endpoints),
            (
                voter.kraft_version_feature.min_supported_version,
                voter.kraft_version_feature.max_supported_version,
            ),
        )
        for voter in record.voters
    )


def _endpoints(endpoints: Iterable[Sequence[object]]) -> tuple[VoterEndpoint, ...]:
    return tuple(VoterEndpoint(str(name), str(host), int(str(port))) for name, host, port in endpoints)
