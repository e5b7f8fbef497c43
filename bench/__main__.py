"""``python -m bench``: measure everything, say each row as it comes, write RESULTS.md.

Exit status 0, or 1 when a figure could not be measured. A goal that is not reached is a figure, not a failure.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING

from bench import brokers, building, machine, report
from bench.figures import devices, idleness, journal, latency, pressure, rosters, sessions, starts, throughput, tools
from bench.rounds import Bench
from bench.rows import MISSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.rows import Row

_FIGURES = {
    "latency": latency,
    "throughput": throughput,
    "rosters": rosters,
    "idleness": idleness,
    "starts": starts,
    "pressure": pressure,
    "journal": journal,
    "tools": tools,
    "sessions": sessions,
    "devices": devices,
}
_PAGE = f"{building.FOLDER}/RESULTS.md"


def main(words: Sequence[str]) -> int:
    chosen = _parse(words)
    if machine.unusable():
        sys.stderr.write(f"bench: nothing can be measured: {machine.unusable()}\n")
        return 1
    machine.raise_descriptors()
    with brokers.private_folder() as folder:
        programs = building.build(folder, with_compiler=not chosen.no_cc)
        same, split = machine.placements()
        bench = Bench(programs, same, split, chosen.quick, say)
        facts = _facts(programs)
        for name, value in facts.items():
            say(f"{name}: {value}")
        rows = _measure(bench, chosen.only or list(_FIGURES))
    facts["load after"] = machine.load()
    with open(chosen.output, "w", encoding="utf-8") as file:
        file.write(report.page(bench, rows, facts))
    say(f"{report.tally(rows)}; written to {os.path.relpath(chosen.output)}")
    return 1 if any(row.verdict == MISSING for row in rows) else 0


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _measure(bench: Bench, names: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    for name in names:
        began_s = time.monotonic()
        found = _FIGURES[name].measure(bench)
        rows += found
        say(f"{name} ({time.monotonic() - began_s:.0f} s):")
        for row in found:
            say(report.line(row))
    return rows


def _facts(programs: building.Programs) -> dict[str, str]:
    compiler = machine.compiler_version(programs.compiler) if programs.compiler else ""
    same, split = machine.placements()
    placed = f"same: processor {same.broker}; split: broker {split.broker}, generator {split.generator}"
    return {**machine.facts(compiler), "generator": programs.generator_name, "placement": placed}


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure this broker against floors.")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--only", nargs="+", choices=list(_FIGURES), help="these kinds of figures")
    parser.add_argument("--output", default=_PAGE, help="where the page goes (default: bench/RESULTS.md)")
    parser.add_argument("--no-cc", action="store_true", help="as if there were no C compiler")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
