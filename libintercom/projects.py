"""Which repository a directory belongs to: the absolute path of git's common directory.

Owns finding it, by reading ``.git`` where that gives git's own answer, else by asking git. Does not own what is made
of it (``identity.project_id``). All worktrees and subdirectories of one repository have one common directory.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# How long git may take to answer (wire.md section 7); a hanging network filesystem must not hang a session.
GIT_TIMEOUT_S = 0.5

# gitrepository-layout(5): what a repository has at least; git itself looks for these three.
_REPOSITORY_NAMES = ("HEAD", "objects", "refs")
# A .git file or commondir file is one line with one path.
_FILE_LIMIT_BYTES = 8192
_GITDIR_PREFIX = "gitdir: "


class _AskGit(Exception):
    """The layout is not the plain one: only git knows what it makes of it."""


def find_common_dir(real_cwd: str) -> str:
    """The real path of the common directory of the repository around ``real_cwd``; ``""`` outside of any."""
    try:
        return _read_common_dir(real_cwd)
    except (_AskGit, OSError):
        return ask_git(real_cwd)


def ask_git(real_cwd: str, environ: Mapping[str, str] | None = None, timeout_s: float = GIT_TIMEOUT_S) -> str:
    """Git's own answer, with its variables removed (a hook's GIT_DIR names another repository); ``""`` for none."""
    import subprocess  # imported here: reading .git answers nearly always

    given = os.environ if environ is None else environ
    kept = {name: value for name, value in given.items() if not name.startswith("GIT_")}
    try:
        answer = subprocess.run(
            ["git", "rev-parse", "--git-common-dir"],  # noqa: S607 - the user's own git, as every tool finds it
            cwd=real_cwd,
            env=kept,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=True,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    found = os.fsdecode(answer.stdout).rstrip("\n")
    return os.path.realpath(os.path.join(real_cwd, found)) if found else ""


def _read_common_dir(real_cwd: str) -> str:
    """Walk up as git does, and stop where it stops: at another filesystem.

    Raises:
        _AskGit: something is there that is not a plain repository or worktree of our own user.

    """
    device = os.stat(real_cwd).st_dev
    current = real_cwd
    while os.stat(current).st_dev == device:
        found = _judge(current)
        if found:
            return found
        if current == "/":
            break
        current = os.path.dirname(current)
    return ""


def _judge(directory: str) -> str:
    entry = os.path.join(directory, ".git")
    try:
        seen = os.stat(entry)
    except FileNotFoundError:
        if _is_repository(directory):
            raise _AskGit from None  # a bare repository, which settings may forbid
        return ""
    git_dir = entry if stat.S_ISDIR(seen.st_mode) else _read_git_file(directory, entry)
    _require_ours(directory, entry, git_dir)
    common = _read_commondir(git_dir)
    if not _is_repository(common) or not os.path.lexists(os.path.join(git_dir, "HEAD")):
        raise _AskGit
    return os.path.realpath(common)


def _read_git_file(directory: str, path: str) -> str:
    """A worktree or submodule: the file names the real place."""
    line = _read_line(path)
    if not line.startswith(_GITDIR_PREFIX):
        raise _AskGit
    return os.path.join(directory, line[len(_GITDIR_PREFIX) :])


def _read_commondir(git_dir: str) -> str:
    try:
        return os.path.join(git_dir, _read_line(os.path.join(git_dir, "commondir")))
    except FileNotFoundError:
        return git_dir


def _read_line(path: str) -> str:
    with open(path, "rb") as file:
        return os.fsdecode(file.read(_FILE_LIMIT_BYTES)).rstrip("\r\n")


def _is_repository(directory: str) -> bool:
    return all(os.path.lexists(os.path.join(directory, name)) for name in _REPOSITORY_NAMES)


def _require_ours(*paths: str) -> None:
    """Git distrusts a repository of another owner unless its settings say otherwise."""
    if any(os.lstat(path).st_uid != os.geteuid() for path in paths):
        raise _AskGit
