"""Sizes: functions and files stay small enough to be read at once; the library's surface stays small.

Hard limits hold for tests too; medians and shares hold for the sources. A lift names one function or file and says
why; an unused lift fails.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from tests.architecture.sources import PACKAGES, PROGRAMS, Source, length_lines, planted, sources

if TYPE_CHECKING:
    from collections.abc import Iterable

# Lines, docstrings of functions left out. The shell has a limit of its own: it is one loop.
FUNCTION_MEDIAN, FUNCTION_MOST, FUNCTION_HARD = 8, 30, 50
FILE_MEDIAN, FILE_HARD = 150, 400
FILE_LIMITS = {"intercomd/shell.py": 250}
# The share of functions that stays within FUNCTION_MOST.
MOST = 0.9

# "path" or "path::Class.function" -> why its hard limit is lifted.
LIFTS: dict[str, str] = {}


def sizes_beyond_limits(files: Iterable[Source], lifts: Iterable[str]) -> dict[str, str]:
    """Name every file and function beyond its hard limit that no lift names."""
    found = {}
    for source in files:
        limit = FILE_LIMITS.get(source.path, FILE_HARD)
        if source.line_count > limit:
            found[source.path] = f"{source.line_count} lines, limit {limit}"
        for name, function in source.functions():
            if length_lines(function) > FUNCTION_HARD:
                found[name] = f"{length_lines(function)} lines, limit {FUNCTION_HARD}"
    return {name: size for name, size in found.items() if name not in lifts}


def typical_sizes_beyond_goals(files: Iterable[Source]) -> list[str]:
    """Compare the medians and the share of short functions with their goals."""
    files = list(files)
    lengths = [length_lines(function) for source in files for _name, function in source.functions()]
    counts = [source.line_count for source in files if source.tree.body]
    share = sum(length <= FUNCTION_MOST for length in lengths) / len(lengths)
    found = []
    if statistics.median(lengths) > FUNCTION_MEDIAN:
        found.append(f"median function: {statistics.median(lengths)} lines, goal {FUNCTION_MEDIAN}")
    if share < MOST:
        found.append(f"functions within {FUNCTION_MOST} lines: {share:.0%}, goal {MOST:.0%}")
    if statistics.median(counts) > FILE_MEDIAN:
        found.append(f"median file: {statistics.median(counts)} lines, goal {FILE_MEDIAN}")
    return found


def test_nothing_is_longer_than_its_hard_limit() -> None:
    assert sizes_beyond_limits(sources(*PACKAGES, *PROGRAMS, "tests"), LIFTS) == {}


def test_typical_functions_and_files_are_short() -> None:
    assert typical_sizes_beyond_goals(sources()) == []


def test_every_lift_is_needed_and_has_a_reason() -> None:
    beyond = sizes_beyond_limits(sources(*PACKAGES, *PROGRAMS, "tests"), ())
    assert [name for name, reason in LIFTS.items() if name not in beyond or not reason] == []


def _function(lines: int, docstring_lines: int = 0) -> str:
    docstring = ['    """' + "\n" * (docstring_lines - 1) + '    """'] if docstring_lines else []
    return "\n".join(["def long():", *docstring, *["    pass"] * (lines - 1)])


def test_a_long_function_is_found_and_a_lift_names_it() -> None:
    files = planted(_function(FUNCTION_HARD + 1))
    assert sizes_beyond_limits(files, ()) == {"libintercom/planted.py::long": "51 lines, limit 50"}
    assert sizes_beyond_limits(files, {"libintercom/planted.py::long"}) == {}


def test_a_docstring_does_not_count() -> None:
    assert sizes_beyond_limits(planted(_function(FUNCTION_HARD, docstring_lines=20)), ()) == {}


def test_a_method_of_a_nested_class_counts() -> None:
    body = _function(FUNCTION_HARD + 1).replace("\n", "\n        ")
    files = planted(f"class A:\n    class B:\n        {body}")
    assert list(sizes_beyond_limits(files, ())) == ["libintercom/planted.py::A.B.long"]


def test_a_long_file_is_found() -> None:
    assert list(sizes_beyond_limits(planted("pass\n" * (FILE_HARD + 1)), ())) == ["libintercom/planted.py"]
    assert list(sizes_beyond_limits(planted("pass\n" * 251, "intercomd/shell.py"), ())) == ["intercomd/shell.py"]


def test_long_typical_sizes_are_found() -> None:
    assert len(typical_sizes_beyond_goals(planted(_function(FUNCTION_MOST + 1) + "\n" * FILE_MEDIAN + "pass\n"))) == 3
