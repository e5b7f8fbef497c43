"""The dialer's judgement without a socket: errors told apart, paths that are none, foreign owners, waiting.

Real sockets are in tests/integration/ownership.
"""

from __future__ import annotations

import errno
import os
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from libintercom import endpoint
from libintercom.endpoint import Attempt, attempt, dial, dial_nonblocking, parse_xucred
from libintercom.errors import Busy, ForeignOwner, IntercomError, NotPermitted, NotRunning, Unreachable
from tests.support.daemon import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PATH = "/tmp/pi-intercom-1000/broker.sock"


def failed(number: int) -> Attempt:
    return endpoint._failed(PATH, OSError(number, os.strerror(number)))


@pytest.mark.parametrize(
    ("number", "outcome", "kind"),
    [
        (errno.ENOENT, endpoint.ABSENT, NotRunning),
        (errno.ECONNREFUSED, endpoint.REFUSED, NotRunning),
        (errno.EAGAIN, endpoint.BUSY, Busy),
        (errno.EACCES, endpoint.NOT_PERMITTED, NotPermitted),
        (errno.EPERM, endpoint.NOT_PERMITTED, NotPermitted),
        (errno.ENOTDIR, endpoint.FAILED, Unreachable),
        (errno.EMFILE, endpoint.FAILED, Unreachable),
        (errno.EPROTOTYPE, endpoint.FAILED, Unreachable),
    ],
)
def test_errors_are_told_apart(number: int, outcome: str, kind: type[IntercomError]) -> None:
    seen = failed(number)
    assert seen.outcome == outcome
    assert type(seen.error()) is kind
    assert seen.error().exit_status == 4
    with pytest.raises(kind):
        seen.require()


def test_only_nobody_there_says_not_running() -> None:
    assert str(failed(errno.ENOENT).error()) == (
        f"intercomd is not running (no socket at {PATH}). Start it: intercomctl broker start"
    )
    assert "no listener behind the socket" in str(failed(errno.ECONNREFUSED).error())
    for number in (errno.EPERM, errno.EACCES, errno.EAGAIN, errno.EMFILE):
        assert "not running" not in str(failed(number).error())


def test_a_path_that_does_not_fit_is_said_so() -> None:
    """Python itself refuses such a path, without an error number."""
    assert "AF_UNIX path too long" in str(endpoint._failed(PATH, OSError("AF_UNIX path too long")).error())


@pytest.mark.parametrize("kind", ["file", "folder", "link", "fifo"])
def test_what_is_no_socket_is_not_connected_to(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "broker.sock"
    {
        "file": lambda: path.write_text(""),
        "folder": path.mkdir,
        "link": lambda: path.symlink_to("elsewhere"),
        "fifo": lambda: os.mkfifo(path),
    }[kind]()
    seen = attempt(str(path))
    assert (seen.outcome, seen.found) == (endpoint.FAILED, "the path is not a socket")
    assert type(seen.error()) is Unreachable


def test_an_absent_path(tmp_path: Path) -> None:
    assert attempt(str(tmp_path / "broker.sock")).outcome == endpoint.ABSENT
    assert attempt(str(tmp_path / "gone" / "broker.sock")).outcome == endpoint.ABSENT
    with pytest.raises(NotRunning):
        dial(str(tmp_path / "broker.sock"))
    with pytest.raises(NotRunning):
        dial_nonblocking(str(tmp_path / "broker.sock"))


def test_a_file_in_the_way_is_not_absence(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    seen = attempt(str(tmp_path / "run" / "broker.sock"))
    assert seen.outcome == endpoint.FAILED
    assert "in the place of its directory is none; move it away" in str(seen.error())


def test_a_file_in_the_place_of_the_socket_is_not_absence(tmp_path: Path) -> None:
    (tmp_path / "broker.sock").write_text("")
    assert attempt(str(tmp_path / "broker.sock")).outcome == endpoint.FAILED


def test_foreign_owners_are_named() -> None:
    found = Attempt(outcome=endpoint.FOREIGN, found="the socket belongs to uid 7, you are 1000", path=PATH)
    assert isinstance(found.error(), ForeignOwner)
    assert "uid 7" in str(found.error())


class Clock:
    def __init__(self) -> None:
        self.now, self.naps = 100.0, 0

    def read(self) -> float:
        return self.now

    def nap(self, seconds: float) -> None:
        self.now += seconds
        self.naps += 1


@pytest.mark.parametrize(("timeout_s", "looks"), [(0.0, 1), (0.035, 5), (1.0, 101)])
def test_a_full_backlog_is_asked_again_until_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch, timeout_s: float, looks: int
) -> None:
    clock, seen = Clock(), []

    def busy(path: str, _uid: int) -> Attempt:
        seen.append(path)
        return failed(errno.EAGAIN)

    monkeypatch.setattr(endpoint, "_look", busy)
    found = attempt(PATH, timeout_s=timeout_s, clock=clock.read, sleep=clock.nap)
    assert found.outcome == endpoint.BUSY
    assert abs(len(seen) - looks) <= 1
    assert ("stayed full for" in found.found) == (timeout_s > 0)


def test_a_backlog_that_empties_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, answers = Clock(), iter([failed(errno.EAGAIN), failed(errno.EAGAIN), failed(errno.ECONNREFUSED)])
    monkeypatch.setattr(endpoint, "_look", lambda _path, _uid: next(answers))
    assert attempt(PATH, clock=clock.read, sleep=clock.nap).outcome == endpoint.REFUSED
    assert clock.naps == 2


def test_macos_credentials() -> None:
    """Struct xucred: version, uid, number of groups, sixteen groups."""
    xucred = struct.Struct("=IIh2x16I")
    assert xucred.size == endpoint._XUCRED_BYTES
    assert parse_xucred(xucred.pack(0, 501, 1, 20, *[0] * 15)) == 501


def test_a_probe_announces_what_no_frame_may_have() -> None:
    assert int.from_bytes(endpoint.PROBE_PREAMBLE, "big") > 1024 * 1024
    assert endpoint.PROBE_NONCE_BYTES >= 16


def test_this_module_loads_nothing_slow() -> None:
    slow = {"subprocess", "asyncio", "ctypes", "uuid", "hashlib", "dataclasses", "typing", "pathlib", "tempfile", "pwd"}
    imports = "import libintercom.endpoint, libintercom.paths, libintercom.identity, sys"
    code = f"{imports}; print({slow!r} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-S", "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    assert loaded.stdout.strip() == "set()"
