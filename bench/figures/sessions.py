"""A session's end beside its journal: a page of a last response, and what a restart of the broker costs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.figures import pages, restarts

if TYPE_CHECKING:
    from bench.rounds import Bench
    from bench.rows import Row


def measure(bench: Bench) -> list[Row]:
    return [*pages.measure(bench), *restarts.measure(bench)]
