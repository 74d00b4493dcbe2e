"""The same results as text for a terminal, and as Markdown for README."""

from benchmarks.figures import shown
from benchmarks.peers.results import Results, Row, Spread
from benchmarks.peers.steps import HEADLINES, Figure

BEGIN = "<!-- figures: printed by `python -m benchmarks peers --readme` -->"
END = "<!-- end of figures -->"


def value_of(row: Row, broker: str) -> str:
    """The median, or why there is none."""
    values = row.of(broker)
    if values is None:
        reason = row.failures.get(broker)
        return f"fails: {reason}" if reason else "-"
    return shown(values.median)


def unit_of(figure: Figure) -> str:
    """The unit, and the way that is better."""
    return f"{figure.unit} {'↑' if figure.more_is_better else '↓'}"


def ratio_text(ratio: Spread) -> str:
    """The median, and the lowest and the highest if they can be told from it."""
    median, lowest, highest = (f"{value:.2f}" for value in ratio)
    return median if lowest == highest else f"{median} ({lowest} to {highest})"


def text_table(results: Results) -> str:
    """One line a figure: Ottla, then each peer with the ratio."""
    ours, *peers = results.brokers
    head = ["figure", "", ours]
    for peer in peers:
        head += [peer, f"{ours} / {peer}"]
    lines: list[list[str]] = [head]
    section = ""
    for row in results.rows:
        if row.section != section:
            section = row.section
            lines.append([section.upper()])
        cells = [row.figure.name, unit_of(row.figure), value_of(row, ours)]
        for peer in peers:
            ratio = row.ratio(ours, peer)
            cells += [value_of(row, peer), ratio_text(ratio) if ratio else ""]
        lines.append(cells)
    widths = [
        max(len(line[column]) for line in lines if column < len(line) > 1) for column in range(len(head))
    ]
    printed = []
    for line in lines:
        padded = [
            cell.rjust(width) if column >= 2 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=False))
        ]
        printed.append("  ".join(padded).rstrip())
    return "\n".join([*description(results), "", *printed])


def description(results: Results) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    amounts = ", with small amounts" if results.is_quick else ""
    rounds = "one round" if results.rounds == 1 else f"{results.rounds} rounds"
    return [
        f"{results.date}, {results.machine}; {rounds} in turn{amounts}.",
        f"{versions}.",
        f"Ratios are {results.brokers[0]} / peer: median (lowest to highest).",
        "↑: more is better; ↓: less is better.",
    ]


def markdown(results: Results) -> str:
    """The block of README: the headlines, a table for each section, bold where Ottla is ahead."""
    ours, *peers = results.brokers
    amounts = "small amounts, " if results.is_quick else ""
    rounds = "one round" if results.rounds == 1 else f"{results.rounds} rounds in turn"
    versions = ", ".join(f"{peer} {results.versions[peer]}" for peer in peers)
    lines = [
        BEGIN,
        f"Taken on {results.date} on {results.machine}, {amounts}{rounds}, beside {versions}.",
        f"A peer's cell shows its median, and {ours}'s figure divided by it: median (lowest to highest),",
        f"bold where {ours} is ahead. ↑: more is better, ↓: less is better.",
    ]
    section = ""
    for row in results.rows:
        if row.figure.name not in HEADLINES:
            continue
        if row.section != section:
            section = row.section
            lines += [
                "",
                f"| {section} | unit | {ours} | {' | '.join(peers)} |",
                "|---|---|--:|" + "--:|" * len(peers),
            ]
        cells = [row.figure.name, unit_of(row.figure), value_of(row, ours)]
        cells += [peer_cell(row, ours, peer) for peer in peers]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, END])


def peer_cell(row: Row, ours: str, peer: str) -> str:
    """A peer's own median, and what ours is divided by it."""
    ratio = row.ratio(ours, peer)
    if ratio is None:
        return value_of(row, peer)
    text = ratio_text(ratio)
    return f"{value_of(row, peer)} · " + (f"**{text}**" if row.is_ahead(ours, peer) else text)


def replace_block(document: str, block: str, *, begin: str = BEGIN, end: str = END) -> str:
    """The document with its block of figures replaced.  Raises ValueError if it has none."""
    before, found_begin, rest = document.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"there is no block between {begin!r} and {end!r}")
    return before + block + after


def block_of(document: str) -> str:
    """The block of figures with its markers.  Raises ValueError if there is none."""
    _, begin, rest = document.partition(BEGIN)
    inside, end, _ = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"there is no block between {BEGIN!r} and {END!r}")
    return begin + inside + end
