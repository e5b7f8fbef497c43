"""The runtime directory: what is refused, with which words, and that it is then used through its descriptor."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from libintercom.errors import UnsafeDirectory
from libintercom.ownership import directory as directories
from libintercom.ownership.directory import open_directory, trusted_owners
from libintercom.platforms import ANDROID, LINUX

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A private parent."""
    tmp_path.chmod(0o700)
    return tmp_path


def refusal(path: Path | str, **options: object) -> UnsafeDirectory:
    with pytest.raises(UnsafeDirectory) as refused:
        open_directory(str(path), **options)  # type: ignore[arg-type]
    assert str(path) in str(refused.value)
    assert "PI_INTERCOM_RUNTIME_DIR" in str(refused.value)
    return refused.value


def test_it_is_created_private_whatever_the_umask(home: Path) -> None:
    before = os.umask(0)
    try:
        with open_directory(str(home / "run")):
            assert stat.S_IMODE((home / "run").stat().st_mode) == 0o700
    finally:
        os.umask(before)


def test_a_cleaner_that_takes_the_empty_directory_is_answered_by_making_it_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, made = os.mkdir, []

    def make_in_vain(path: str, mode: int) -> None:
        make(path, mode)
        made.append(path)
        if len(made) <= losses:
            os.rmdir(path)

    monkeypatch.setattr(os, "mkdir", make_in_vain)
    losses = 2
    open_directory(str(home / "run")).close()
    assert len(made) == 3
    os.rmdir(home / "run")
    losses = 1_000
    assert "cannot be examined" in refusal(home / "run").reason


def test_its_parents_are_not_created(home: Path) -> None:
    assert "cannot be examined" in refusal(home / "a" / "b").reason
    assert not (home / "a").exists()


def test_it_is_not_created_for_who_only_looks(home: Path) -> None:
    assert "No such file" in refusal(home / "run", is_created=False).reason


@pytest.mark.parametrize("mode", [0o755, 0o701, 0o710, 0o777, 0o1777, 0o740])
def test_access_for_others_is_refused_and_not_repaired(home: Path, mode: int) -> None:
    (home / "run").mkdir()
    (home / "run").chmod(mode)
    refused = refusal(home / "run")
    assert f"{mode:04o}" in refused.reason
    assert f"uid {os.getuid()}" in refused.owner
    assert stat.S_IMODE((home / "run").stat().st_mode) == mode


def test_a_symbolic_link_is_refused(home: Path) -> None:
    (home / "real").mkdir(mode=0o700)
    (home / "run").symlink_to("real")
    assert refusal(home / "run").reason == "it is a symbolic link"
    assert (home / "run").is_symlink()


def test_a_file_is_refused(home: Path) -> None:
    (home / "run").write_text("")
    assert refusal(home / "run").reason == "it is not a directory"


def test_another_users_directory_is_refused(home: Path) -> None:
    (home / "run").mkdir(mode=0o700)
    # Seen as another user: the parents are still trusted, since they are root's or (for this call) nobody's business.
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(directories, "trusted_owners", lambda _uid: frozenset((0, os.getuid())))
        refused = refusal(home / "run", uid=os.getuid() + 1)
    assert refused.reason == "it belongs to another user"
    assert refused.owner.startswith(f"uid {os.getuid()}")


@pytest.mark.parametrize("kind", ["nfs", "fuse.sshfs"])
def test_a_network_filesystem_is_refused(home: Path, kind: str) -> None:
    assert kind in refusal(home / "run", network_type=lambda _fd: kind).reason


def test_a_refusal_leaves_no_descriptor_open(home: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    refusal(home / "run", network_type=lambda _fd: "nfs")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_parent_of_somebody_else_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner can move our directory away, sticky or not."""
    monkeypatch.setattr(directories, "trusted_owners", lambda _uid: frozenset((4242,)))
    refused = refusal(home / "run")
    assert "its parent / belongs to somebody else" in refused.reason
    assert "uid 0 (root)" in refused.owner


def test_a_parent_in_which_everybody_may_rename_is_refused(home: Path) -> None:
    (home / "open").mkdir()
    (home / "open").chmod(0o777)
    assert "(mode 0777)" in refusal(home / "open" / "run").reason
    (home / "open").chmod(0o1777)
    open_directory(str(home / "open" / "run")).close()


def test_links_on_the_way_are_followed_and_judged(home: Path) -> None:
    (home / "real").mkdir()
    (home / "absolute").symlink_to(home / "real")
    (home / "relative").symlink_to("../" + home.name + "/./absolute")
    with open_directory(str(home / "relative" / ".." / "real" / "run")) as opened:
        assert opened.is_current()
    (home / "real").chmod(0o777)
    assert "may rename" in refusal(home / "relative" / "run").reason


def test_a_loop_of_links_ends(home: Path) -> None:
    (home / "a").symlink_to("b")
    (home / "b").symlink_to("a")
    assert "symbolic links" in refusal(home / "a" / "run").reason


def test_it_is_used_through_its_descriptor_after_it_was_moved(home: Path) -> None:
    with open_directory(str(home / "run")) as opened:
        assert opened.is_current()
        (home / "run").rename(home / "aside")
        assert not opened.is_current()
        os.close(opened.open("made", os.O_CREAT | os.O_WRONLY))
        assert opened.names() == ["made"]
        assert (home / "aside" / "made").exists()
        (home / "run").mkdir(mode=0o700)
        assert not opened.is_current()
        with pytest.raises(UnsafeDirectory, match="moved or replaced"):
            opened.require_current()


def test_files_in_it_are_never_followed_or_waited_for(home: Path) -> None:
    with open_directory(str(home / "run")) as opened:
        (home / "run" / "link").symlink_to("/etc/passwd")
        os.mkfifo(home / "run" / "fifo")
        with pytest.raises(OSError, match="symbolic links"):
            opened.open("link", os.O_RDONLY)
        os.close(opened.open("fifo", os.O_RDONLY))
        assert opened.mark("nothing") is None


def test_a_replacement_while_it_is_opened_is_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "run").mkdir(mode=0o700)
    (home / "target").mkdir(mode=0o700)
    look = directories._check_entry

    def swap(path: str, uid: int) -> None:
        look(path, uid)
        (home / "run").rmdir()
        (home / "run").symlink_to("target")

    monkeypatch.setattr(directories, "_check_entry", swap)
    assert refusal(home / "run").reason == "it was replaced while it was opened"


def fake_proc(home: Path, uid_map: str) -> str:
    (home / "proc" / "self").mkdir(parents=True)
    (home / "proc" / "self" / "uid_map").write_text(uid_map)
    (home / "proc" / "sys" / "kernel").mkdir(parents=True)
    (home / "proc" / "sys" / "kernel" / "overflowuid").write_text("65534\n")
    return str(home / "proc")


@pytest.mark.parametrize(
    ("platform", "uid_map", "owners"),
    [
        (LINUX, "         0          0 4294967295\n", {0, 1000}),
        (LINUX, "         0       1000          1\n", {0, 1000, 65534}),
        (LINUX, "         0       1000          1\n         1     100000      65536\n", {0, 1000, 65534}),
        (ANDROID, "         0          0 4294967295\n", {0, 1000}),
        (LINUX, "", {0, 1000}),
    ],
)
def test_whose_directories_are_trusted(home: Path, platform: str, uid_map: str, owners: set[int]) -> None:
    assert trusted_owners(1000, platform, fake_proc(home, uid_map)) == owners


def test_androids_system_is_trusted_there_only(home: Path) -> None:
    proc = fake_proc(home, "0 0 4294967295")
    assert trusted_owners(10123, ANDROID, proc) == {0, 1000, 10123}
    assert trusted_owners(10123, LINUX, proc) == {0, 10123}


def test_an_owner_without_a_name() -> None:
    assert directories.describe_owner(0) == "uid 0 (root)"
    assert directories.describe_owner(3_999_999_999) == "uid 3999999999"


def test_sharing_and_closing_can_be_repeated(home: Path) -> None:
    opened = open_directory(str(home / "run"))
    assert opened.share()
    assert opened.share()
    opened.close()
    opened.close()
