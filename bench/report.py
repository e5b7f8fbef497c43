"""What a reader gets: a line for each row as it comes, and RESULTS.md.

Owns the texts. Does not own any figure.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bench.brokers import ECHO, OURS, PEER, C
from bench.rows import MISSING, REACHED, SHORT, STRETCH

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bench.rounds import Bench
    from bench.rows import Row

_ORDER = (C, ECHO, PEER, OURS)
_NAMES = {C: "C, epoll", ECHO: "asyncio + json", PEER: "peer", OURS: "intercomd"}


def line(row: Row) -> str:
    """A row for a terminal."""
    goals = [f"{name} {text}" for name, text in (("bar", row.bar_text), ("stretch", row.stretch_text)) if text]
    parts = (f"{row.verdict:>13}  {row.figure}: {row.found_text}", f"[{', '.join(goals)}]" if goals else "", row.note)
    return "  ".join(part for part in parts if part)


def tally(rows: Iterable[Row]) -> str:
    verdicts = [row.verdict for row in rows]
    counts = {word: verdicts.count(word) for word in (STRETCH, REACHED, SHORT, MISSING)}
    return ", ".join(f"{count} {word}" for word, count in counts.items())


def page(bench: Bench, rows: list[Row], facts: dict[str, str]) -> str:
    """All of RESULTS.md."""
    parts = [_head(bench, rows), _facts(facts), _goals(rows), _brokers(bench), _limits(bench)]
    return "\n\n".join(parts) + "\n"


def _head(bench: Bench, rows: list[Row]) -> str:
    quick = "A quick run: fewer and shorter rounds, to see that everything can be measured."
    kind = quick if bench.is_quick else "A full run."
    return f"""# Results

Written by `make bench`; what each row means stands in [README.md](README.md). {kind} Medians of {bench.rounds} or more
interleaved rounds, least and most in brackets; ratios are taken round by round against floors of the same run.

**{tally(rows)}** of {len(rows)} rows; some have no goal of their own."""


def _facts(facts: dict[str, str]) -> str:
    return "## The machine\n\n" + "\n".join(f"- {name}: {value}" for name, value in facts.items())


def _goals(rows: list[Row]) -> str:
    head = f"## Goals\n\n| figure | bar | stretch | found | verdict | beside it |\n|{' --- |' * 6}\n"
    cells = (
        (row.figure, row.bar_text, row.stretch_text, row.found_text, row.verdict, row.note.replace("|", "/"))
        for row in rows
    )
    return head + "\n".join(f"| {' | '.join(cell)} |" for cell in cells)


def _brokers(bench: Bench) -> str:
    columns = list(bench.side_by_side)
    titles = [f"{column}, {bench.units[column]}" for column in columns]
    head = f"## Brokers side by side\n\n| broker | {' | '.join(titles)} |\n|{' --- |' * (len(columns) + 1)}\n"
    return head + "\n".join(
        f"| {_NAMES[name]} | {' | '.join(_cell(bench, column, name) for column in columns)} |"
        for name in _ORDER
        if any(name in found for found in bench.side_by_side.values())
    )


def _cell(bench: Bench, column: str, name: str) -> str:
    found = bench.side_by_side[column].get(name)
    return found.text("").replace("  ", " ").strip() if found else "-"


def _limits(bench: Bench) -> str:
    parts = ["## Limits in force\n\nAs the broker itself told them to a session that registered."]
    for command, limits in bench.limits.items():
        told = "\n".join(f"{name}: {json.dumps(value)}" for name, value in sorted(limits.items()))
        parts.append(f"`{command}`:\n\n```\n{told or 'it told none'}\n```")
    return "\n\n".join(parts)
