"""A trial that is a table: each line of a promise, and the tests that show it for real.

Owns running the tests of each line and saying what was seen. A line without a test that ran is a violation.
"""

from __future__ import annotations

import collections
import contextlib
import io
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Outcomes:
    """What pytest said of each test: passed, failed or skipped, by node id."""

    def __init__(self) -> None:
        self.by_node: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.by_node[report.nodeid] = report.outcome


def run_tests(nodes: Sequence[str]) -> dict[str, str]:
    """Run tests quietly; the outcome of each that was collected."""
    outcomes = Outcomes()
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["-q", "-p", "no:cacheprovider", *nodes], plugins=[outcomes])
    return outcomes.by_node


def judge_lines(table: Mapping[str, Sequence[str]], seen: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """A line of text for each line of the table, and what is wrong with it."""
    said, violations = [], []
    for line, nodes in table.items():
        counts: collections.Counter[str] = collections.Counter()
        for node in nodes:
            found = [outcome for name, outcome in seen.items() if name == node or name.startswith(f"{node}[")]
            counts.update(found)
            if not found:
                violations.append(f"{line}: {node} did not run")
        said.append(f"  {line}: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
        if set(counts) != {"passed"}:
            violations.append(f"{line}: not shown, {dict(counts)}")
    return said, violations
