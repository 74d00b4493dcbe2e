"""Reads the golden batches: ``[name]``, lines of hex, and ``#`` for how they were made."""

from pathlib import Path

GOLDEN = Path(__file__).parents[2] / "golden" / "records"


def golden_bytes(file_name: str) -> dict[str, bytes]:
    """The batches of one golden file, by name."""
    lines: dict[str, list[str]] = {}
    for line in (GOLDEN / file_name).read_text().splitlines():
        if line.startswith("["):
            name = line.strip("[]")
            lines[name] = []
        elif line and not line.startswith("#"):
            lines[name].append(line)
    return {name: bytes.fromhex("".join(hex_lines)) for name, hex_lines in lines.items()}
