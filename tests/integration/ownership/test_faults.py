"""Every system call of ownership refused once: an outcome and no exception, no descriptor lost, the next succeeds."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import socket
from typing import TYPE_CHECKING, Any

import pytest

from intercomd.edges.listener.binding import bind_socket
from intercomd.edges.ownership.acquisition import acquire
from intercomd.edges.ownership.holding import Ownership
from intercomd.edges.ownership.outcomes import Outcome
from intercomd.edges.ownership.selfcheck import OURS, Sight

if TYPE_CHECKING:
    from collections.abc import Callable

    from libintercom.paths import Places

IN_PLACE = Sight(is_directory_current=True, socket=OURS, record=OURS)
# More calls than any step makes.
MANY = 400
# Not fstat: it cannot fail on an open descriptor of a local file.
CALLS: list[tuple[Any, str]] = [
    *[(os, name) for name in ("open", "mkdir", "stat", "lstat", "rename", "link", "unlink", "write")],
    *[(os, name) for name in ("read", "listdir", "chmod", "utime")],
    (fcntl, "flock"),
    (socket.socket, "bind"),
    (socket.socket, "listen"),
    (socket.socket, "connect"),
]


class Faults:
    """Refuses the call number ``nth`` of those it watches, with ``code``; ``name`` is then which one it was."""

    def __init__(self, patch: pytest.MonkeyPatch, nth: int, code: int) -> None:
        self.nth, self.code, self.count, self.name = nth, code, 0, ""
        for owner, name in CALLS:
            patch.setattr(owner, name, self._watch(getattr(owner, name), name))

    def _watch(self, real: Any, name: str) -> Any:
        def call(*arguments: Any, **names: Any) -> Any:
            self.count += 1
            if self.count == self.nth:
                self.name = name
                raise OSError(self.code, os.strerror(self.code))
            return real(*arguments, **names)

        return call


def count_fds() -> int:
    return len(os.listdir("/proc/self/fd"))


def each_fault(code: int, step: Callable[[], Any], prepare: Callable[[], object]) -> int:
    """Run ``step`` with its first call refused, then with its second, until none is; how many there were."""
    for nth in range(1, MANY):
        prepare()
        with pytest.MonkeyPatch.context() as patch:
            faults = Faults(patch, nth, code)
            try:
                step()
            except Exception as error:
                raise AssertionError(f"call {nth}, {faults.name}, was refused") from error
        if not faults.name:
            return nth - 1
    raise AssertionError("there is no end of calls")


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOSPC, errno.EACCES, errno.EIO])
def test_winning(places: Places, code: int) -> None:
    before = count_fds()
    refused = []

    def step() -> None:
        won = acquire(places, bind_socket, deadline_s=0.0)
        if isinstance(won, Outcome):
            refused.append(won)
        else:
            won.leave(0.0)

    def prepare() -> None:
        assert count_fds() == before
        won = acquire(places, bind_socket)
        assert isinstance(won, Ownership), won
        assert won.leave()

    assert each_fault(code, step, prepare) > 20
    assert refused


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOSPC, errno.EACCES, errno.EIO])
@pytest.mark.parametrize("lost", ["broker.sock", "broker.pid", ""])
def test_healing(places: Places, own: Callable[[], Ownership], code: int, lost: str) -> None:
    """``lost`` is what a cleaner took; "" stands for the whole directory."""
    ownership = own()
    before = count_fds()

    def heal() -> None:
        """What the self-check asks for; whoever serves the former socket closes it."""
        former, seen = ownership.listening, ownership.check()
        if seen.socket != OURS:
            ownership.republish()
        elif seen.record != OURS:
            ownership.restore_record()
        if ownership.listening is not former:
            former.close()

    def prepare() -> None:
        for _ in range(3):
            heal()
        assert ownership.check() == IN_PLACE
        assert count_fds() == before
        if lost:
            os.unlink(f"{places.runtime_dir}/{lost}")
        else:
            shutil.rmtree(places.runtime_dir)

    def step() -> None:
        # Looking may fail too; then there is another look.
        with contextlib.suppress(OSError):
            heal()

    assert each_fault(code, step, prepare) > 5
