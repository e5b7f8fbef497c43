"""The broker never forks after it took its locks: a child would hold them, and a dead broker would look alive."""

from __future__ import annotations

import ast
import re

from tests.architecture.sources import Source, planted, sources

# What makes a process share open files; a new program started with closed descriptors would still be a child.
FORKING = {"fork", "forkpty", "posix_spawn", "posix_spawnp", "popen", "system"}
STARTING = re.compile("(?:spawn|exec)[lv]p?e?")
FORKING_MODULES = {"subprocess", "multiprocessing", "concurrent", "pty"}
# Before any lock is taken: the candidate becomes an orphan.
ALLOWED = {"intercomd/settling.py: fork"}


def forks(files: tuple[Source, ...]) -> set[str]:
    found = set()
    for source in files:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Attribute) and (node.attr in FORKING or STARTING.fullmatch(node.attr)):
                found.add(f"{source.path}: {node.attr}")
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found |= {f"{source.path}: {name}" for name in names if name.split(".")[0] in FORKING_MODULES}
    return found


def test_the_broker_never_forks() -> None:
    assert forks(sources("intercomd")) == ALLOWED


def test_a_fork_is_found() -> None:
    for code in (
        "import os\nos.fork()",
        "import subprocess",
        "from multiprocessing import Process",
        "os.execv('/x', [])",
    ):
        assert len(forks(planted(code, "intercomd/planted.py"))) == 1
