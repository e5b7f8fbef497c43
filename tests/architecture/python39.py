"""Python 3.9 as the library needs it: what a file uses that 3.9 does not have, and where a real 3.9 is.

Owns a check of the syntax tree, which runs everywhere, and the search for an interpreter. The tree shows what is
certain: newer syntax, newer names of the standard library, newer arguments, unions of types outside annotations.
"""

from __future__ import annotations

import ast
import functools
import glob
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.architecture.sources import Source

# The oldest Python on other devices and macOS.
OLDEST = (3, 9)

# Names a 3.9 interpreter where the search would not find one.
VARIABLE = "INTERCOM_PYTHON39"

# Attributes of standard modules that came after 3.9. Whole modules: an empty set.
NEWER: dict[str, set[str]] = {
    "tomllib": set(),
    "wsgiref.types": set(),
    "asyncio": {"Barrier", "Runner", "TaskGroup", "timeout", "timeout_at"},
    "contextlib": {"aclosing", "chdir"},
    "dataclasses": {"KW_ONLY"},
    "datetime": {"UTC"},
    "enum": {"StrEnum", "ReprEnum", "EnumType", "verify", "member", "nonmember"},
    "hashlib": {"file_digest"},
    "inspect": {"getmembers_static", "get_annotations"},
    "itertools": {"batched", "pairwise"},
    "math": {"cbrt", "exp2", "sumprod"},
    "operator": {"call"},
    "os": {"EFD_CLOEXEC", "eventfd", "login_tty", "process_cpu_count", "splice", "unshare", "setns"},
    "random": {"binomialvariate"},
    "socket": {"SO_INCOMING_CPU"},
    "statistics": {"correlation", "covariance", "linear_regression"},
    "sys": {"exception", "orig_argv", "stdlib_module_names"},
    "threading": {"getprofile", "gettrace", "setprofile_all_threads"},
    "types": {"EllipsisType", "NoneType", "NotImplementedType", "UnionType"},
    "typing": {
        "Concatenate",
        "LiteralString",
        "Never",
        "NotRequired",
        "ParamSpec",
        "Required",
        "Self",
        "TypeAlias",
        "TypeGuard",
        "TypeVarTuple",
        "Unpack",
        "assert_never",
        "assert_type",
        "dataclass_transform",
        "is_typeddict",
        "override",
        "reveal_type",
    },
}

# Builtins that came after 3.9, and methods with names that no other type of ours has.
NEWER_BUILTINS = {"BaseExceptionGroup", "EncodingWarning", "ExceptionGroup", "aiter", "anext"}
NEWER_METHODS = {"add_note", "bit_count"}

# Arguments that came after 3.9, by the last part of the called name.
NEWER_ARGUMENTS: dict[str, set[str]] = {
    "zip": {"strict"},
    "dataclass": {"slots", "kw_only", "match_args", "weakref_slot"},
    "field": {"kw_only"},
    "bisect": {"key"},
    "bisect_left": {"key"},
    "bisect_right": {"key"},
    "insort": {"key"},
    "create_unix_server": {"cleanup_socket"},
    "rmtree": {"onexc"},
    "TemporaryDirectory": {"ignore_cleanup_errors", "delete"},
}

# Operands that make ``|`` a union of types, which 3.9 cannot compute.
TYPE_NAMES = {"bool", "bytes", "dict", "float", "frozenset", "int", "list", "object", "set", "str", "tuple", "type"}


def newer_features(source: Source) -> list[str]:
    """Everything in ``source`` that Python 3.9 does not have, with its line."""
    try:
        tree = ast.parse(source.text, source.path, feature_version=OLDEST)
    except SyntaxError as wrong:
        return [f"{source.path}:{wrong.lineno}: {wrong.msg}"]
    return [f"{source.path}:{node.lineno}: {what}" for node, what in _findings(tree)]


def _findings(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    for node in _evaluated(tree):
        if isinstance(node, ast.Import):
            yield from ((node, f"import {a.name}") for a in node.names if NEWER.get(a.name) == set())
        elif isinstance(node, ast.ImportFrom):
            newer = NEWER.get(node.module or "")
            yield from ((node, f"{node.module}.{a.name}") for a in node.names if _is_newer(newer, a.name))
        elif isinstance(node, ast.Attribute):
            yield from _attribute(node)
        elif isinstance(node, ast.Name) and node.id in NEWER_BUILTINS:
            yield node, node.id
        elif isinstance(node, ast.Call):
            yield from _call(node)
        elif isinstance(node, ast.BinOp) and _is_union(node):
            yield node, "a union of types outside an annotation"


def _is_newer(newer: set[str] | None, name: str) -> bool:
    return newer is not None and (not newer or name in newer)


def _attribute(node: ast.Attribute) -> Iterator[tuple[ast.expr, str]]:
    if isinstance(node.value, ast.Name) and node.attr in NEWER.get(node.value.id, set()):
        yield node, f"{node.value.id}.{node.attr}"
    elif node.attr in NEWER_METHODS:
        yield node, f"method {node.attr}"


def _call(node: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    for argument in node.keywords:
        if argument.arg in NEWER_ARGUMENTS.get(called, set()):
            yield node, f"{called}({argument.arg}=…)"


def _is_union(node: ast.BinOp) -> bool:
    return isinstance(node.op, ast.BitOr) and (_is_type(node.left) or _is_type(node.right))


def _is_type(node: ast.expr) -> bool:
    is_none = isinstance(node, ast.Constant) and node.value is None
    return is_none or (isinstance(node, ast.Name) and node.id in TYPE_NAMES)


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """Walk what runs: neither annotations (they are postponed) nor what only the type checker reads."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns"} or (isinstance(node, ast.If) and name == "body" and _is_unread(node.test)):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _evaluated(child)


def _is_unread(test: ast.expr) -> bool:
    """Say whether 3.9 skips the branch: for the type checker, or for a newer version."""
    text = ast.unparse(test)
    return text.endswith("TYPE_CHECKING") or text.startswith("sys.version_info >= (3, 1")


@functools.cache
def interpreter() -> str:
    """The absolute path of a Python 3.9 that runs, or an empty text."""
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    candidates = [
        os.environ.get(VARIABLE, ""),
        shutil.which("python3.9") or "",
        *sorted(glob.glob(f"{pyenv}/versions/3.9*/bin/python3.9"), reverse=True),
        "/usr/bin/python3",
    ]
    return next((found for path in candidates if path and (found := _oldest(path))), "")


def _oldest(path: str) -> str:
    script = "import sys; print(sys.executable if sys.version_info[:2] == (3, 9) else '')"
    try:
        ended = subprocess.run([path, "-c", script], capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ended.stdout.strip()
