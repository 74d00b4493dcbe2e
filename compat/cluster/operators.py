"""What operators do with a cluster: Ottla's commands, Kafka's tools, and partitions on other nodes."""

import subprocess
import sys

from compat.broker_process import ROOT
from compat.cluster.nodes import OttlaNode
from compat.cluster.quorum import ask
from compat.cluster.views import ClusterView
from compat.oracle.java import run_tool
from compat.waiting import wait_until
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

REASSIGNED_WITHIN_SECONDS = 120


def ottla_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of Ottla's, once it has ended."""
    command = [sys.executable, "-m", "ottla", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def run_ottla(*arguments: str) -> str:
    """What a command of Ottla's says that does what it was told."""
    done = ottla_command(*arguments)
    assert done.returncode == 0, f"ottla {arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def said(tool: str, *arguments: str) -> str:
    """What a tool of Kafka's says that does what it was told."""
    done = run_tool(tool, *arguments)
    assert done.exit_code == 0, f"{tool} {arguments}: {done.output}{done.errors}"
    return done.output


def format_to_join(ottla: OttlaNode, cluster_id: str) -> None:
    """Let the node become one of a cluster that has controllers."""
    overrides = [f"--override={name}={value}" for name, value in ottla.settings.items()]
    arguments = ("--data", str(ottla.data), "--cluster-id", cluster_id, "--no-initial-controllers")
    run_ottla("format", *arguments, *overrides)


def hand_over(bootstrap: str, to: int) -> None:
    """Let the node be the controller, alone."""
    run_ottla("handover", "--bootstrap-server", bootstrap, "--to", str(to))


def reassign(view: ClusterView, topics: list[str], replicas: list[int], *, through: str) -> None:
    """Let all partitions of the topics have these replicas, and wait until they are in sync.

    ``through`` is the address of the broker that is asked for it.
    """
    orders = [
        ReassignableTopic(
            name=topic,
            partitions=[
                ReassignablePartition(partition_index=index, replicas=replicas)
                for index in range(len(view.replicas(topic)))
            ],
        )
        for topic in topics
    ]
    request = AlterPartitionReassignmentsRequest(topics=orders)
    answer = ask(through, request, AlterPartitionReassignmentsResponse, 1)
    codes = [each.error_code for topic in answer.responses for each in topic.partitions]
    assert {answer.error_code, *codes} == {0}

    def is_done() -> bool:
        told = ask(through, ListPartitionReassignmentsRequest(), ListPartitionReassignmentsResponse, 0)
        return told is not None and not told.error_code and not told.topics

    def are_in_sync() -> bool:
        wanted = set(replicas)
        return all(
            found == wanted for topic in topics for found in view.replicas(topic) + view.in_sync(topic)
        )

    wait_until(is_done, f"{topics} are on {replicas}", patience_seconds=REASSIGNED_WITHIN_SECONDS)
    wait_until(are_in_sync, f"{topics} are in sync on {replicas}")
