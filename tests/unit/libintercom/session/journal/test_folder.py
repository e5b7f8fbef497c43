"""The folder and its files: private from the first moment, checked, locked, and never overwritten."""

from __future__ import annotations

import os
import stat

import pytest

from libintercom.session.journal import Journal, JournalUnavailable
from libintercom.session.journal import folder as folders
from tests.support.journaled import WAIT_S, admitted


def mode_of(path: str) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
def test_every_file_is_private_whatever_the_umask(place: str, umask: int) -> None:
    folder = f"{place}/a/b/journals"
    before = os.umask(umask)
    try:
        if umask == 0o777 and os.geteuid() != 0:
            pytest.skip("a folder that nobody may enter can be used by root alone")
        with Journal.open("ann", folder=folder if umask != 0o777 else f"{place}/journals") as opened:
            opened.append([admitted("m1")]).wait(WAIT_S)
            found = os.path.dirname(opened.path)
            modes = {name.rpartition("sqlite")[2]: mode_of(f"{found}/{name}") for name in os.listdir(found)}
            assert len(modes) == 4
            assert set(modes.values()) == {0o600}
    finally:
        os.umask(before)


def test_missing_parents_are_made_for_us_alone(place: str) -> None:
    folders.open_folder(f"{place}/state/intercom/journals").close()
    assert [mode_of(f"{place}/{path}") for path in ("state", "state/intercom", "state/intercom/journals")] == [
        0o700
    ] * 3


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_may_enter_is_refused(folder: str, mode: int) -> None:
    os.mkdir(folder)
    os.chmod(folder, mode)
    with pytest.raises(JournalUnavailable, match="nobody else may have access"):
        Journal.open("ann", folder=folder)


def test_a_link_to_a_folder_is_refused(place: str, folder: str) -> None:
    os.mkdir(f"{place}/real", 0o700)
    os.symlink(f"{place}/real", folder)
    with pytest.raises(JournalUnavailable, match="symbolic link"):
        Journal.open("ann", folder=folder)


def test_a_network_filesystem_is_refused(folder: str) -> None:
    with pytest.raises(JournalUnavailable, match=r"network filesystem \(nfs4\)") as refused:
        folders.open_folder(folder, network_type=lambda _fd: "nfs4")
    assert "XDG_STATE_HOME" in str(refused.value)


def test_a_folder_below_a_file_is_refused(place: str) -> None:
    with open(f"{place}/file", "wb"):
        pass
    with pytest.raises(JournalUnavailable, match="cannot be"):
        Journal.open("ann", folder=f"{place}/file/journals")


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_a_link_in_the_place_of_a_file_is_refused_and_not_followed(folder: str, suffix: str) -> None:
    os.mkdir(folder, 0o700)
    os.symlink("/etc/passwd", f"{folder}/{folders.stem_of('ann')}.sqlite{suffix}")
    with pytest.raises(JournalUnavailable, match="not an ordinary file of yours"):
        Journal.open("ann", folder=folder)


def test_a_file_that_others_may_read_or_that_has_two_names_is_refused(folder: str) -> None:
    Journal.open("ann", folder=folder).close()
    path = f"{folder}/{folders.stem_of('ann')}.sqlite"
    os.chmod(path, 0o640)
    with pytest.raises(JournalUnavailable, match="chmod 600"):
        Journal.open("ann", folder=folder)
    os.chmod(path, 0o600)
    os.link(path, f"{folder}/other")
    with pytest.raises(JournalUnavailable, match="it has 2 names"):
        Journal.open("ann", folder=folder)


def test_the_lock_file_of_somebody_who_never_wrote_names_nobody(folder: str) -> None:
    with folders.open_folder(folder) as opened:
        assert folders.read_holder(opened, "x") == 0
        folders.create_private(opened, "x.lock")
        assert folders.read_holder(opened, "x") == 0


def test_any_native_id_has_a_file_name_of_its_own() -> None:
    ids = ["", "a", "A", "../x", "a\ud800", "\x00", "é" * 5_000]
    stems = [folders.stem_of(native_id) for native_id in ids]
    assert len(set(stems)) == len(ids)
    assert all(len(stem) == 64 and stem.isalnum() for stem in stems)


def test_setting_aside_never_overwrites(folder: str) -> None:
    with folders.open_folder(folder) as opened:
        paths = []
        for content in (b"one", b"two", b"three"):
            for suffix in ("", "-wal"):
                with open(f"{folder}/x.sqlite{suffix}", "wb") as file:
                    file.write(content)
            paths.append(folders.set_aside(opened, "x", now_s=0))
        assert [os.path.basename(path) for path in paths] == [
            "x.damaged-19700101T000000Z.sqlite",
            "x.damaged-19700101T000000Z-1.sqlite",
            "x.damaged-19700101T000000Z-2.sqlite",
        ]
        for path, content in zip(paths, (b"one", b"two", b"three"), strict=True):
            for suffix in ("", "-wal"):
                with open(path + suffix, "rb") as file:
                    assert file.read() == content
