"""The id a name keeps: one for each name and real directory, a fresh one beside a live session, never a foreign one."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from libintercom.session.errors import NativeIdUnavailable
from libintercom.session.native import claim_native_id

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "names")


def kept(name: str, cwd: object, folder: str) -> str:
    with claim_native_id(name, str(cwd), folder=folder) as claim:
        assert claim.is_kept
        return claim.native_id


def test_the_same_name_in_the_same_place_gets_its_id_again(tmp_path: Path, folder: str) -> None:
    first = kept("rev", tmp_path, folder)
    assert kept("rev", tmp_path, folder) == first
    assert kept(" rev ", tmp_path, folder) == first


def test_another_name_or_place_is_another_session(tmp_path: Path, folder: str) -> None:
    ids = {kept("rev", tmp_path, folder), kept("Rev", tmp_path, folder), kept("rev", tmp_path.parent, folder)}
    assert len(ids) == 3


def test_a_link_to_the_place_is_the_place(tmp_path: Path, folder: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert kept("rev", tmp_path / "link", folder) == kept("rev", tmp_path / "real", folder)


def test_beside_a_live_session_there_is_a_fresh_id(tmp_path: Path, folder: str) -> None:
    with claim_native_id("rev", str(tmp_path), folder=folder) as first:
        second = claim_native_id("rev", str(tmp_path), folder=folder)
        assert (second.is_kept, second.native_id != first.native_id) == (False, True)
        second.release()
        # Releasing a fresh one gives nothing away.
        assert not claim_native_id("rev", str(tmp_path), folder=folder).is_kept
    assert kept("rev", tmp_path, folder) == first.native_id


def test_a_killed_session_frees_its_id(tmp_path: Path, folder: str) -> None:
    code = (
        "import sys, time\nfrom libintercom.session.native import claim_native_id\n"
        "claim = claim_native_id('rev', sys.argv[1], folder=sys.argv[2])\nprint(claim.native_id, flush=True)\n"
        "sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path), folder]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        told = holder.stdout.readline().strip()
        assert not claim_native_id("rev", str(tmp_path), folder=folder).is_kept
        holder.kill()
        holder.wait()
    assert kept("rev", tmp_path, folder) == told


@pytest.mark.parametrize("written", [b"", b"{", b"[]", b'{"nativeId": ""}', b'{"nativeId": " a"}', b"\xff" * 9000])
def test_what_is_no_id_is_replaced(tmp_path: Path, folder: str, written: bytes) -> None:
    first = kept("rev", tmp_path, folder)
    (path,) = [os.path.join(folder, name) for name in os.listdir(folder)]
    with open(path, "wb") as remembered:
        remembered.write(written)
    second = kept("rev", tmp_path, folder)
    assert second != first
    assert kept("rev", tmp_path, folder) == second


def test_only_this_user_can_read_it(tmp_path: Path, folder: str) -> None:
    kept("rev", tmp_path, folder)
    (path,) = [os.path.join(folder, name) for name in os.listdir(folder)]
    assert [stat.S_IMODE(os.stat(one).st_mode) for one in (folder, path)] == [0o700, 0o600]


def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NativeIdUnavailable, match=r"cannot keep a session id for 'rev' in .*/file/names"):
        claim_native_id("rev", str(tmp_path), folder=str(tmp_path / "file" / "names"))


def test_a_link_in_its_place_is_not_followed(tmp_path: Path, folder: str) -> None:
    kept("rev", tmp_path, folder)
    (path,) = [os.path.join(folder, name) for name in os.listdir(folder)]
    os.unlink(path)
    os.symlink(tmp_path / "elsewhere", path)
    with pytest.raises(NativeIdUnavailable):
        claim_native_id("rev", str(tmp_path), folder=folder)
    assert not (tmp_path / "elsewhere").exists()
