"""Several of Kafka's tools in one Java process: what takes a second each is then done in a moment."""

import base64
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from compat.java_programs import program_command
from compat.oracle.java import TOOLS, ToolResult

PROGRAMS = Path(__file__).resolve().parent

TIMEOUT_SECONDS = 120
"""No tool takes so long that ends at all."""


class ToolRunner:
    """Java, running one tool after another in ``folder``; started when it is needed."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, tool: str, *arguments: str, text: str = "") -> ToolResult:
        """Run one of ``TOOLS`` with ``text`` as its input."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        words = (TOOLS[tool], text, *arguments)
        process.stdin.write(b"\t".join(base64.b64encode(word.encode()) for word in words) + b"\n")
        process.stdin.flush()
        watchdog = threading.Timer(TIMEOUT_SECONDS, process.kill)
        watchdog.start()
        answer = process.stdout.readline()
        watchdog.cancel()
        if not answer:
            raise RuntimeError(f"Java ended with {process.wait()} in {tool} {arguments}")
        code, output, errors = answer.split(b"\t")
        if not code:  # the tool has ended Java
            code = str(process.wait()).encode()
            self.close()
        return ToolResult(int(code), base64.b64decode(output).decode(), base64.b64decode(errors).decode())

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            self._process = subprocess.Popen(
                program_command(PROGRAMS, "Tools"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=self._folder,
            )
        return self._process

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


@contextmanager
def tool_runner(folder: Path | None = None) -> Iterator[ToolRunner]:
    """Java for as long as the block lasts."""
    runner = ToolRunner(folder)
    try:
        yield runner
    finally:
        runner.close()


def run_tools(address: str, *commands: Sequence[str]) -> list[str]:
    """What each command prints: a name of ``TOOLS`` with its arguments, which are about the broker there."""
    printed: list[str] = []
    with tool_runner() as runner:
        for tool, *arguments in commands:
            done = runner.run(tool, "--bootstrap-server", address, *arguments)
            assert done.exit_code == 0, f"{tool} {arguments}: {done}"
            printed.append(done.output)
    return printed
