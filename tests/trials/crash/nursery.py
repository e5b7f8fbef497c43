"""A process that forks lives: everything they import is loaded once, so a life costs a fork.

Owns starting one life after the other, each with a channel of its own, and saying how it ended. Does not own what a
life does (``recipient``). Forked before the trial has threads or a loop; in a child nothing of the trial runs on.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

    Life = Callable[[dict[str, Any], socket.socket], None]

# An order is a few hundred bytes.
_MOST_BYTES = 65_536
_FAILED_STATUS = 70


class Nursery:
    """One life at a time: ``begin`` it, then wait for ``ended``. ``close`` ends the process."""

    def __init__(self, life: Life) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            self._control.close()
            _serve(theirs, life)
        theirs.close()

    def begin(self, order: dict[str, Any]) -> tuple[int, socket.socket]:
        """A descriptor of a new life's process (pidfd_open(2)), and this end of its channel. Both are the caller's."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [json.dumps(order).encode()], [theirs.fileno()])
        _said, pidfds, _flags, _address = socket.recv_fds(self._control, _MOST_BYTES, 1)
        return pidfds[0], ours

    def ended(self) -> int:
        """The wait status of the life that was begun; waits for its end."""
        return int(self._control.recv(_MOST_BYTES))

    def close(self) -> None:
        self._control.close()
        os.waitpid(self.pid, 0)


def _serve(control: socket.socket, life: Life) -> NoReturn:
    status = _FAILED_STATUS
    try:
        while _raise_one(control, life):
            pass
        status = 0
    finally:
        os._exit(status)


def _raise_one(control: socket.socket, life: Life) -> bool:
    """Fork one life and wait for its end; False when nobody wants another."""
    said, fds, _flags, _address = socket.recv_fds(control, _MOST_BYTES, 1)
    if not said:
        return False
    channel = socket.socket(fileno=fds[0])
    pid = os.fork()
    if pid == 0:
        control.close()
        _live(life, json.loads(said), channel)
    channel.close()
    # Opened before anybody waits for it: however short its life, it is this one's.
    pidfd = os.pidfd_open(pid)
    socket.send_fds(control, [b"begun"], [pidfd])
    os.close(pidfd)
    _pid, status = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):
        control.send(b"%d" % status)
    return True


def _live(life: Life, order: dict[str, Any], channel: socket.socket) -> NoReturn:
    """The child: it never returns into the nursery, and what goes wrong stands in its channel."""
    status = _FAILED_STATUS
    try:
        life(order, channel)
        status = 0
    except BaseException as error:
        with contextlib.suppress(OSError):
            channel.sendall(json.dumps({"broke": f"{type(error).__name__}: {error}"}).encode() + b"\n")
        raise
    finally:
        os._exit(status)
