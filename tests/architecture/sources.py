"""The project's own Python files, parsed once, as the architecture tests look at them.

Owns what counts as a source, as a test and as a name that the project gave. Judges nothing.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]

# The packages of the distribution, in the order in which they depend on one another.
PACKAGES = ("libintercom", "intercomd", "intercomctl", "intercom_adapters")

# Folders of programs that are run from the checkout and never installed.
PROGRAMS = ("remote", "examples", "bench")

# Written by a program from other sources, which are judged instead.
GENERATED = ("remote/remote_cli.py",)

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file: ``path`` relative to the repository, its text and its tree."""

    path: str
    text: str

    @functools.cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @property
    def line_count(self) -> int:
        return len(self.text.splitlines())

    @property
    def module(self) -> str:
        """The dotted name, without ``__init__``."""
        return self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    def functions(self) -> Iterator[tuple[str, FunctionNode]]:
        """Every function and method with its qualified name (``path::Class.method``)."""
        yield from _functions(self.tree, f"{self.path}::")


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, FunctionNode]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FunctionNode):
            yield f"{prefix}{child.name}", child
            yield from _functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        else:
            yield from _functions(child, prefix)


def length_lines(function: FunctionNode) -> int:
    """Lines of a function from ``def`` to its end, decorators and docstring left out."""
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function, clean=False) is None:
        return total
    docstring = function.body[0]
    return total - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)


@functools.cache
def tracked_files() -> tuple[str, ...]:
    """Every file of the repository that git tracks or would track, relative to its root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    names = {name.decode() for name in listed.stdout.split(b"\0") if name}
    return tuple(sorted(name for name in names if (ROOT / name).is_file()))


@functools.cache
def sources(*folders: str) -> tuple[Source, ...]:
    """The Python files under ``folders`` (default: everything but the tests), generated ones left out."""
    chosen = folders or PACKAGES + PROGRAMS
    return tuple(
        Source(name, (ROOT / name).read_text(encoding="utf-8"))
        for name in tracked_files()
        if name.endswith(".py") and name.split("/")[0] in chosen and name not in GENERATED
    )


def planted(text: str, path: str = "libintercom/planted.py") -> tuple[Source, ...]:
    """One made-up file, to show that a gate closes."""
    return (Source(path, text),)


def words(name: str) -> list[str]:
    """``SnakeOr_camelName`` as lower-case words."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]
