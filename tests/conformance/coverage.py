"""Which vectors and tests stand for which rule: the table in COVERAGE.md.

``python -m tests.conformance.coverage`` writes the table anew. Owns finding the ``@covers`` marks of other tests, by
reading their source. Does not own running anything.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from typing import TYPE_CHECKING

from tests.conformance.catalogue import HERE, rules, vectors

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE = HERE / "COVERAGE.md"
_TESTS = HERE.parent
_HEAD = """\
# Rules of the wire and what shows them

Made by `python -m tests.conformance.coverage` from `rules.json`, `vectors/*.json` and the `@covers` marks of other
tests; a rule that nothing shows fails `tests/conformance/test_coverage.py`.

| rule | what it says | shown by |
| --- | --- | --- |
"""


def shown_by() -> dict[str, list[str]]:
    """Rule id -> labels of vectors and tests."""
    found: dict[str, list[str]] = defaultdict(list)
    for vector in vectors():
        for rule in vector.rules:
            found[rule].append(vector.label)
    for test, marked in sorted(marks()):
        for rule in marked:
            found[rule].append(f"`{test}`")
    return found


def marks() -> Iterator[tuple[str, list[str]]]:
    """Every test with a ``@covers`` mark: its name, and the rules it names."""
    for path in sorted(_TESTS.rglob("test_*.py")):
        source = path.read_text("utf-8")
        if "@covers(" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (marked := _marked(node)):
                yield f"{path.relative_to(_TESTS).as_posix()}::{node.name}", marked


def _marked(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    calls = [mark for mark in node.decorator_list if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "covers"]
    return [str(ast.literal_eval(argument)) for call in calls for argument in call.args]


def table() -> str:
    found = shown_by()
    lines = []
    for rule in rules().values():
        shown = "; ".join(label.replace("|", "\\|") for label in found.get(rule.id, [])) or "**nothing**"
        lines.append(f"| {rule.id} | {rule.rule.replace('|', chr(92) + '|')} | {shown} |")
    return _HEAD + "\n".join(lines) + "\n"


def uncovered() -> list[str]:
    found = shown_by()
    return [rule for rule in rules() if rule not in found]


def unknown() -> list[str]:
    """Rules that a mark names and the catalogue does not have."""
    return sorted({rule for _test, marked in marks() for rule in marked} - set(rules()))


if __name__ == "__main__":
    TABLE.write_text(table(), "utf-8")
    sys.stdout.write(f"{TABLE.name}: {len(rules())} rules, not shown: {', '.join(uncovered()) or 'none'}\n")
