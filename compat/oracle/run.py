"""Holding all conversations with one broker."""

import secrets
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from compat.oracle.connection import Connection
from compat.oracle.conversation import Conversation
from compat.oracle.names import Names, Origin
from compat.oracle.preparing import BARRIER, Preparing
from compat.oracle.recording import Place, Recording, Told
from compat.oracle.talk import Alter, Step, Talk
from protocol.error_codes import ErrorCode
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.list_groups import ListGroupsRequest

STARTING: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
"""What a broker says until it has made and read the topics of its own."""

GROUP, TRANSACTION = 0, 1

WORKERS: Final = 8
"""Conversations held at the same time."""

Turn = tuple[Conversation, int]
"""A conversation and one of its rounds."""


def hold(address: str, conversations: Sequence[Conversation], *, alter: Alter | None = None) -> Recording:
    """What the broker at ``address`` answers; ``alter`` changes its answers before they are looked at."""
    origin = get_ready(address)
    spare: list[Connection] = []

    def run(turn: Turn) -> list[Step]:
        talk = Talk(*turn, origin, secrets.token_hex(4), alter, spare)
        try:
            turn[0].hold(talk)
            talk.leave_connection()
        except Exception as error:
            error.add_note(f"in {turn[0].subject}: {turn[0].name}: round {turn[1]}")
            raise
        finally:
            talk.close()
        return talk.steps

    turns = [(each, turn) for each in conversations for turn in each.rounds]
    alone = [turn for turn in turns if turn[0].alone]
    # Rounds of one conversation wait at the same place: spread out, they do not all wait at once.
    together = sorted((turn for turn in turns if not turn[0].alone), key=lambda turn: turn[1])
    steps = {turn: run(turn) for turn in alone}
    with ThreadPoolExecutor(WORKERS) as workers:
        steps |= dict(zip(together, workers.map(run, together), strict=True))
    for connection in spare:
        connection.close()
    recording: Recording = {}
    for each in conversations:
        recording |= _in_order(each, {turn: steps[each, turn] for turn in each.rounds})
    return recording


def get_ready(address: str) -> Origin:
    """Wait until the broker can do all that conversations need, and learn what tells it from every other."""
    nobody = Origin(address, cluster_id="", log_dir="", began_ms=0)
    preparing = Preparing(nobody, BARRIER, Names(BARRIER, nobody))
    try:
        for kind in (GROUP, TRANSACTION):
            preparing.until(
                FindCoordinatorRequest(key_type=kind, coordinator_keys=[BARRIER]),
                lambda answer: answer.coordinators[0].error_code not in STARTING,
            )
        preparing.until(ListGroupsRequest(), lambda answer: answer.error_code == ErrorCode.NONE)
        for transactional_id in (None, BARRIER):
            preparing.until(
                InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1000),
                lambda answer: answer.error_code not in STARTING,
            )
        preparing.barrier_topic()
        cluster = preparing.quietly(DescribeClusterRequest())
        (directory,) = preparing.quietly(DescribeLogDirsRequest(topics=None)).results
    finally:
        preparing.close()
    return Origin(address, cluster.cluster_id, directory.log_dir, int(time.time() * 1000))


def _in_order(held: Conversation, steps: dict[int, list[Step]]) -> Recording:
    """The rounds of one conversation, step by step.  A step of some rounds only follows the one before it."""
    labels: list[str] = []
    for turn in held.rounds:
        place = 0
        for step in steps[turn]:
            if step.label in labels:
                place = labels.index(step.label) + 1
            else:
                labels.insert(place, step.label)
                place += 1
    told = {
        (step.label, turn): Told(step.api, step.version, step.outcome)
        for turn in held.rounds
        for step in steps[turn]
    }
    return {
        Place(held.subject, held.name, label, turn): told[label, turn]
        for label in labels
        for turn in held.rounds
        if (label, turn) in told
    }
