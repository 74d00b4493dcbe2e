"""More than five hundred commands of Kafka's tools print of our broker what they print of Kafka's."""

from pathlib import Path

import pytest

from compat.kafka_tools.comparing import judge
from compat.kafka_tools.playing import ottla_cluster_stage, ottla_stage, play
from compat.kafka_tools.transcript import CLUSTER_FOLDER, FOLDER, Command, parse, read, shown, subjects, told
from compat.oracle.java import TOOLS


@pytest.mark.slow
def test_kafka_s_tools_say_of_us_what_they_say_of_kafka(kafka_jars: Path, tmp_path: Path) -> None:
    transcripts = {subject: read(subject) for subject in subjects()}
    with ottla_stage(tmp_path) as stage:
        ours = play(stage, transcripts)
    assert list(judge(transcripts, ours)) == []


@pytest.mark.slow
def test_they_say_the_same_of_three_nodes(kafka_jars: Path, tmp_path: Path) -> None:
    transcripts = {subject: read(subject, CLUSTER_FOLDER) for subject in subjects(CLUSTER_FOLDER)}
    with ottla_cluster_stage(tmp_path) as stage:
        ours = play(stage, transcripts)
    assert list(judge(transcripts, ours)) == []


def test_a_transcript_is_kept_as_it_is_read() -> None:
    for folder in (FOLDER, CLUSTER_FOLDER):
        for subject in subjects(folder):
            transcript = read(subject, folder)
            assert parse(shown(transcript)) == transcript
            assert all(entry.said is not None for entry in transcript if isinstance(entry.step, Command))


def test_every_tool_is_tried_but_those_that_no_broker_answers() -> None:
    commands = [entry.step for subject in subjects() for entry in read(subject)]
    tried = {command.words[0] for command in commands if isinstance(command, Command)}
    assert TOOLS.keys() - tried == {"kafka-jmx"}
    assert len([command for command in commands if isinstance(command, Command)]) > 450


def test_a_line_that_belongs_nowhere_is_an_error() -> None:
    for line in ("  an answer", "= 0", "< text", "* what?"):
        with pytest.raises(ValueError, match="a line that"):
            parse([line])
    with pytest.raises(ValueError, match="means nothing"):
        parse(["$ kafka-topics --list", "* what?"])


def test_what_no_two_runs_have_in_common_is_left_out() -> None:
    text = """
        usage: tool [-h]
           --many
        tool: error: too few arguments
        2026-11-30 04:05:06,789 ERROR KafkaAdminClient: [AdminClient clientId=adminclient-1] it failed
        java.lang.Exception: at 2026-11-30 04:05:06,789
        \tat org.apache.kafka.Tool.main(Tool.java:7)
        Valid states are: b, a
        Option        Description
        --help        helps
    """
    lines = "\n".join(line[8:] for line in text.splitlines()).replace("\\t", "\t")
    assert [line for line in told(lines, {"Exception": "Failure"}, "$") if line] == [
        "tool: error: too few arguments",
        "java.lang.Failure: at <time>",
        "Valid states are: a, b",
    ]
    assert told("b 1.5\na 20", {}, "~") == ("a 20", "b 1.5")
    assert told("b 1.5\na 20", {}, "?") == ("b <number>", "a <number>")
