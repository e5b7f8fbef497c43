"""Opening the broker's socket and checking whose it is: the only dialer.

Owns one connection attempt, the test of the peer's user, and telling the failures apart (ownership.md section 4).
Does not own which path it is (``paths``), starting a broker (``starting``) nor what is said on the connection.

"Nobody is there" is only ENOENT and ECONNREFUSED. A sandbox's EPERM, a foreign owner and a full backlog are
never read as "not running", and never a reason to start a second broker.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
import time

from libintercom.errors import Busy, ForeignOwner, NotPermitted, NotRunning, Unreachable
from libintercom.wire.record import Record, optional, required
from libintercom.wire.values import ANYTHING, COUNT, STRING, TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

# Outcomes of an attempt. ``libintercom.ownership.verdict`` reads the first four.
CONNECTED = "connected"
ABSENT = "absent"
REFUSED = "refused"
BUSY = "busy"
NOT_PERMITTED = "not_permitted"
FOREIGN = "foreign"
FAILED = "failed"

# A local broker that does not take a connection in this time is not healthy (ownership.md section 4).
CONNECT_TIMEOUT_S = 1.0
# How often a full backlog is asked again: the broker empties it in one turn of its loop.
_RETRY_S = 0.01

# What a self-check writes: a length that no frame may announce, so that any other broker drops the connection at once,
# followed by ``PROBE_NONCE_BYTES`` bytes that the asker made up.
PROBE_PREAMBLE = b"\xff\xff\xff\xff"
PROBE_NONCE_BYTES = 16

# struct ucred (unix(7)) and, on macOS, struct xucred and the peer's pid (<sys/un.h>, <sys/ucred.h>).
_SO_PEERCRED, _UCRED_BYTES = 17, 12
_SOL_LOCAL, _LOCAL_PEERCRED, _LOCAL_PEERPID, _XUCRED_BYTES = 0, 1, 2, 76
_INT_BYTES = 4

_BY_ERRNO = {
    errno.ENOENT: (ABSENT, "no socket"),
    # Nobody is there, but nobody can be started either before somebody has looked at what stands in the way.
    errno.ENOTDIR: (FAILED, "what stands in the place of its directory is none; move it away"),
    errno.ECONNREFUSED: (REFUSED, "no listener behind the socket"),
    errno.EAGAIN: (BUSY, "its backlog is full"),
    errno.EACCES: (NOT_PERMITTED, "EACCES"),
    errno.EPERM: (NOT_PERMITTED, "EPERM"),
}


class Attempt(Record):
    """How one attempt ended. ``found`` is for a person; ``connection`` is there only when ``outcome`` is connected.

    ``peer_pid`` names whoever called listen(): under socket activation that is the supervisor, so it proves that an
    endpoint is one's own, and nothing else. It is absent where the system does not tell.
    """

    outcome: str = required(STRING)
    found: str = required(TEXT)
    path: str = required(STRING)
    connection: socket.socket | None = optional(ANYTHING, default=None)
    peer_pid: int | None = optional(COUNT, default=None)

    def require(self) -> socket.socket:
        """The connection, or the error that says why there is none."""
        if self.connection is not None:
            return self.connection
        raise self.error()

    def error(self) -> Unreachable:
        """The failure as an error for a caller."""
        kinds: dict[str, type[Unreachable]] = {
            ABSENT: NotRunning,
            REFUSED: NotRunning,
            BUSY: Busy,
            NOT_PERMITTED: NotPermitted,
            FOREIGN: ForeignOwner,
        }
        return kinds.get(self.outcome, Unreachable)(self.path, self.found)

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()


def dial(path: str, *, timeout_s: float = CONNECT_TIMEOUT_S) -> socket.socket:
    """A connected, blocking socket to the broker of our own user.

    ``timeout_s`` bounds waiting for a full backlog.

    Raises:
        NotRunning: no socket, or nobody listens.
        NotPermitted: EACCES or EPERM, a sandbox or a foreign directory.
        ForeignOwner: the socket or the listener belongs to another user.
        Busy: the backlog stayed full.
        Unreachable: anything else, for instance a path that is no socket.

    """
    connection = attempt(path, timeout_s=timeout_s).require()
    connection.setblocking(True)
    return connection


def dial_nonblocking(path: str) -> socket.socket:
    """Do the same at once, for an event loop: a connected, non-blocking socket. A full backlog is ``Busy``."""
    return attempt(path, timeout_s=0.0).require()


def attempt(
    path: str,
    *,
    timeout_s: float = CONNECT_TIMEOUT_S,
    uid: int | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Attempt:
    """Try to connect, asking a full backlog again until ``timeout_s`` is over; never raises for what it finds.

    The connection of a successful attempt is non-blocking and the caller's to close.
    """
    user = os.getuid() if uid is None else uid
    end = clock() + timeout_s
    while True:
        seen = _look(path, user) or _connect(path, user)
        if seen.outcome != BUSY:
            return seen
        if clock() >= end:
            return seen.replace(found=f"its backlog stayed full for {timeout_s:g} s") if timeout_s else seen
        sleep(_RETRY_S)


def probe(path: str, nonce: bytes) -> Attempt:
    """Connect once, without waiting, and write ``PROBE_PREAMBLE`` and ``nonce``; the connection is closed again.

    A broker asks in this way whether the path still leads to itself: its own listener sees the nonce arrive. Where
    the system tells ``peer_pid``, that alone proves it for a socket which the broker bound itself.
    """
    found = attempt(path, timeout_s=0.0)
    if found.connection is None:
        return found
    try:
        found.connection.send(PROBE_PREAMBLE + nonce)
    except OSError:
        # Closed at once by whoever accepted it: not our listener, which reads first. The outcome stays "connected".
        pass
    finally:
        found.close()
    return found.replace(connection=None)


def read_peer(connection: socket.socket) -> tuple[int, int | None]:
    """The uid and, where the system tells it, the pid at the other end of a connected Unix socket."""
    if sys.platform == "darwin":
        raw = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_BYTES)
        return parse_xucred(raw), _number(connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, _INT_BYTES), 0)
    raw = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERCRED, _UCRED_BYTES)
    # A peer of another pid namespace shows as 0.
    return _number(raw, 1), _number(raw, 0) or None


def parse_xucred(raw: bytes) -> int:
    """The uid in macOS's struct xucred: the second member, after its version."""
    return _number(raw, 1)


def _number(raw: bytes, index: int) -> int:
    return int.from_bytes(raw[index * _INT_BYTES : (index + 1) * _INT_BYTES], sys.byteorder)


def _look(path: str, uid: int) -> Attempt | None:
    """Judge the path before connecting: only a socket of our own user is connected to."""
    try:
        seen = os.lstat(path)
    except OSError as error:
        return _failed(path, error)
    if not stat.S_ISSOCK(seen.st_mode):
        return Attempt(outcome=FAILED, found="the path is not a socket", path=path)
    if seen.st_uid != uid:
        return Attempt(outcome=FOREIGN, found=f"the socket belongs to uid {seen.st_uid}, you are {uid}", path=path)
    return None


def _connect(path: str, uid: int) -> Attempt:
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError as error:
        return _failed(path, error)
    try:
        # Never blocking: an interrupted connect() to a full backlog would be taken for a finished one.
        connection.setblocking(False)
        connection.connect(path)
        peer_uid, peer_pid = read_peer(connection)
    except OSError as error:
        connection.close()
        return _failed(path, error)
    if peer_uid != uid:
        connection.close()
        return Attempt(outcome=FOREIGN, found=f"its listener belongs to uid {peer_uid}, you are {uid}", path=path)
    return Attempt(outcome=CONNECTED, found="connected", path=path, connection=connection, peer_pid=peer_pid)


def _failed(path: str, error: OSError) -> Attempt:
    outcome, found = _BY_ERRNO.get(error.errno or 0, (FAILED, error.strerror or str(error)))
    return Attempt(outcome=outcome, found=found, path=path)
