"""Words: names say one thing each, errors are caught where they are understood, and nothing is promised.

Checks the names that the project gives to modules, classes, functions and methods. Does not check prose.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from tests.architecture.sources import FunctionNode, Source, planted, sources, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Each says nothing about what a thing is or does, or already means something else here.
BANNED = {"manager", "handler", "helper", "util", "common", "service", "data", "info", "do", "context"}

# Banned as the first word of a function: "process" is a running program here, never an activity.
BANNED_VERBS = {"process"}

# Names that somebody else prescribes, or one of the meanings that is ours.
PRESCRIBED = {
    "data_received": "asyncio.Protocol calls it",
    "find_common_dir": "git calls the directory that all worktrees share its common directory",
    "_read_common_dir": "the same",
    "replace_context": "the seeds call a native session in one incarnation its context",
    "OwnContext": "the context of a session, as the seeds call it",
    "ContextInvalidated": "the same",
    "_context_invalidated": "the same",
}

# The two places that catch everything: the loop that must live on, and the one way a command fails.
CATCH_ALL_PLACES = {"intercomd/shell.py", "intercomctl/failures.py"}

CATCH_ALL_KINDS = {"Exception", "BaseException"}

# Words of work that was not done, in pieces so that this file is clean.
PROMISES = re.compile("|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "NotImplemented" + "Error"]))


def names_of(source: Source) -> Iterator[tuple[str, bool]]:
    """Every name the file gives to a module, class or function, and whether it is a function."""
    yield source.module.rsplit(".", maxsplit=1)[-1], False
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, False
        elif isinstance(node, FunctionNode):
            yield node.name, True


def banned_names(files: Iterable[Source]) -> list[str]:
    found = []
    for source in files:
        for name, is_function in names_of(source):
            parts = words(name)
            singular = {part.removesuffix("s") for part in parts} | set(parts)
            is_banned = singular & BANNED or (is_function and parts[:1] and parts[0] in BANNED_VERBS)
            if is_banned and name not in PRESCRIBED:
                found.append(f"{source.path}: {name}")
    return found


def broad_handlers(files: Iterable[Source]) -> list[str]:
    """Every place that catches everything and keeps it; one that cleans up and raises again is no end for a bug."""
    return [
        f"{source.path}:{node.lineno}"
        for source in files
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler) and _is_broad(node.type) and not _raises_again(node)
    ]


def _is_broad(caught: ast.expr | None) -> bool:
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in CATCH_ALL_KINDS) for kind in kinds)


def _raises_again(caught: ast.ExceptHandler) -> bool:
    last = caught.body[-1]
    is_exception = isinstance(caught.type, ast.Name) and caught.type.id == "Exception"
    return not is_exception and isinstance(last, ast.Raise) and last.exc is None


def promises(files: Iterable[Source]) -> list[str]:
    return [
        f"{source.path}:{number}: {line.strip()}"
        for source in files
        for number, line in enumerate(source.text.splitlines(), start=1)
        if PROMISES.search(line)
    ]


def test_no_name_uses_a_banned_word() -> None:
    assert banned_names(sources()) == []


def test_everything_is_caught_in_exactly_two_places() -> None:
    places = [place.rsplit(":", maxsplit=1)[0] for place in broad_handlers(sources())]
    assert sorted(places) == sorted(CATCH_ALL_PLACES)


def test_no_stub_is_left() -> None:
    assert promises(sources()) == []


def test_every_module_says_what_it_owns() -> None:
    assert [source.path for source in sources() if not ast.get_docstring(source.tree)] == []


def test_every_module_postpones_its_annotations() -> None:
    """Without it, an annotation of a newer Python is evaluated on 3.9, and at the cost of start-up time."""
    assert [source.path for source in sources() if lacks_postponed_annotations(source)] == []


def lacks_postponed_annotations(source: Source) -> bool:
    has_code = any(not isinstance(node, ast.Expr) for node in source.tree.body)
    return has_code and "from __future__ import annotations" not in source.text


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("class PeerManager: ...", "libintercom/peers.py"),
        ("def send_data(): ...", "libintercom/peers.py"),
        ("async def process_frame(): ...", "libintercom/peers.py"),
        ("class Peer:\n    def do(self): ...", "libintercom/peers.py"),
        ("", "libintercom/utils.py"),
        ("def frame_helpers(): ...", "libintercom/peers.py"),
        ("class HTTPHandler: ...", "libintercom/peers.py"),
    ],
)
def test_a_banned_name_is_found(code: str, path: str) -> None:
    assert len(banned_names(planted(code, path))) == 1


@pytest.mark.parametrize("code", ["def data_received(): ...", "def metadata(): ...", "class Undo: ...", "x_data = 1"])
def test_other_names_are_left_alone(code: str) -> None:
    assert banned_names(planted(code)) == []


@pytest.mark.parametrize("caught", ["except Exception:", "except:", "except (OSError, Exception) as e:"])
def test_a_broad_handler_is_found(caught: str) -> None:
    assert broad_handlers(planted(f"try:\n    pass\n{caught}\n    pass\n")) == ["libintercom/planted.py:3"]


def test_cleaning_up_and_raising_again_is_left_alone() -> None:
    code = "try:\n    pass\nexcept BaseException:\n    close()\n    raise\n"
    assert broad_handlers(planted(code)) == []
    assert broad_handlers(planted(code.replace("BaseException", "Exception"))) == ["libintercom/planted.py:3"]


@pytest.mark.parametrize("line", ["# TO" + "DO: more", "raise NotImplemented" + "Error"])
def test_a_promise_is_found(line: str) -> None:
    assert len(promises(planted(line))) == 1


def test_a_module_without_postponed_annotations_is_found() -> None:
    assert lacks_postponed_annotations(planted("import os")[0])
