"""One project for all worktrees, subdirectories and links of a repository: read directly, and the same as git says."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from libintercom import projects
from libintercom.projects import ask_git, find_common_dir

if TYPE_CHECKING:
    from pathlib import Path


def git(where: Path, *arguments: str) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(where),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "protocol.file.allow",
        "GIT_CONFIG_VALUE_0": "always",
    }
    person = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *person, *arguments], cwd=where, env=environ, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit and a subdirectory."""
    root = tmp_path / "repo"
    (root / "deep" / "er").mkdir(parents=True)
    git(root, "init")
    git(root, "commit", "--allow-empty", "-m", "first")
    return root


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The directories for which git was asked."""
    calls: list[str] = []

    def record(cwd: str) -> str:
        calls.append(cwd)
        return ask_git(cwd)

    monkeypatch.setattr(projects, "ask_git", record)
    return calls


def test_everything_in_a_repository_is_one_project(repository: Path, tmp_path: Path, asked: list[str]) -> None:
    git(repository, "worktree", "add", str(tmp_path / "tree"))
    (tmp_path / "tree" / "sub").mkdir()
    (tmp_path / "link").symlink_to(repository / "deep")
    expected = str(repository / ".git")
    for place in ("repo", "repo/deep/er", "repo/.git", "tree", "tree/sub", "link/er"):
        real = os.path.realpath(tmp_path / place)
        assert find_common_dir(real) == expected, place
        assert ask_git(real) == expected, place
    # Only inside .git itself the plain layout does not say enough.
    assert asked == [expected]


def test_a_submodule_is_a_project_of_its_own(repository: Path, tmp_path: Path, asked: list[str]) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init")
    git(other, "commit", "--allow-empty", "-m", "first")
    git(repository, "submodule", "add", str(other), "sub")
    inside = str(repository / "sub")
    assert find_common_dir(inside) == ask_git(inside) == str(repository / ".git" / "modules" / "sub")
    assert asked == []


def test_outside_there_is_none(tmp_path: Path, asked: list[str]) -> None:
    assert find_common_dir(str(tmp_path)) == ask_git(str(tmp_path)) == ""
    assert asked == []


def test_a_bare_repository_is_left_to_git(tmp_path: Path, asked: list[str]) -> None:
    git(tmp_path, "init", "--bare", "bare")
    bare = str(tmp_path / "bare")
    assert find_common_dir(bare) == bare
    assert asked == [bare]


@pytest.mark.parametrize("text", ["", "gitdir:nothing", "gitdir: /nonexistent", "nonsense"])
def test_a_broken_git_file_is_left_to_git(tmp_path: Path, asked: list[str], text: str) -> None:
    (tmp_path / ".git").write_text(text)
    assert find_common_dir(str(tmp_path)) == ""
    assert asked == [str(tmp_path)]


def test_an_incomplete_repository_is_left_to_git(repository: Path, asked: list[str]) -> None:
    (repository / ".git" / "HEAD").unlink()
    assert find_common_dir(str(repository)) == ""
    assert asked == [str(repository)]


def test_anothers_repository_is_left_to_git(
    repository: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git decides by its own settings whether it trusts that owner."""
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    find_common_dir(str(repository))
    assert asked == [str(repository)]


def test_variables_of_git_do_not_decide(repository: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "GIT_DIR": str(repository / ".git"), "GIT_CEILING_DIRECTORIES": str(repository)}
    assert ask_git(str(tmp_path), environ) == ""
    assert ask_git(str(repository / "deep"), environ) == str(repository / ".git")


def test_no_git_and_a_slow_git_are_no_repository(repository: Path, tmp_path: Path) -> None:
    assert ask_git(str(repository), {"PATH": str(tmp_path)}) == ""
    (tmp_path / "git").write_text("#!/bin/sh\nexec sleep 30\n")
    (tmp_path / "git").chmod(0o755)
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert ask_git(str(repository), environ, timeout_s=0.05) == ""


def test_a_directory_that_is_gone_is_no_repository(tmp_path: Path) -> None:
    assert find_common_dir(str(tmp_path / "gone")) == ""
