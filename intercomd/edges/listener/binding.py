"""Binding the broker's socket without a moment in which it has its name and does not listen.

Owns the socket from its temporary name to its canonical one. Does not own whether it may be bound (the ownership edge
calls this under the start lock, after its verdict) nor serving it. No event loop takes part: one that binds a path
itself removes what stands there.
"""

from __future__ import annotations

import os
import socket
import stat

from libintercom.errors import UnsafeDirectory
from libintercom.ownership.directory import RuntimeDirectory, mark_of
from libintercom.ownership.temporaries import discard, remove_if_same, temporary_name
from libintercom.paths import SOCKET_NAME

SOCKET_MODE = 0o600
# The kernel cuts it to net.core.somaxconn (4096 by default): a storm of clients waits in the queue, unrefused.
BACKLOG = 4096


class BoundSocket:
    """A listening, non-blocking socket and the file that leads to it, until ``publish`` under a temporary name."""

    def __init__(self, directory: RuntimeDirectory, temporary: str, listening: socket.socket) -> None:
        self.directory, self.temporary, self.listening = directory, temporary, listening
        seen = directory.stat(temporary)
        if not stat.S_ISSOCK(seen.st_mode) or seen.st_uid != directory.uid:
            raise UnsafeDirectory(directory.path, "the socket that was bound in it is not the one that is there")
        self.mark = mark_of(seen)

    def publish(self) -> None:
        """Give the socket its canonical name, over what stands there. Only under the start lock, after the verdict."""
        self.directory.rename(self.temporary, SOCKET_NAME)

    def abandon(self) -> None:
        """Close the socket and take away whichever name it has. Only under the start lock."""
        self.listening.close()
        discard(self.directory, self.temporary)
        remove_if_same(self.directory, SOCKET_NAME, self.mark)


def bind_socket(directory: RuntimeDirectory) -> BoundSocket:
    """Bind, protect and listen at a temporary name in ``directory``.

    Raises:
        UnsafeDirectory: the path no longer leads to the directory, so the socket came to be elsewhere.
        OSError: it cannot be bound.

    """
    name = temporary_name()
    path = os.path.join(directory.path, name)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.setblocking(False)
        # bind() knows no directory descriptor; that it landed in ours is looked at afterwards, through ours.
        listening.bind(path)
        os.chmod(name, SOCKET_MODE, dir_fd=directory.fd)
        listening.listen(BACKLOG)
        return BoundSocket(directory, name, listening)
    except FileNotFoundError as error:
        _undo(listening, path)
        raise UnsafeDirectory(directory.path, "it was moved or replaced while it was in use") from error
    except BaseException:
        _undo(listening, path)
        raise


def _undo(listening: socket.socket, path: str) -> None:
    """By path, as it was bound: in a directory that took the place of ours nobody would sweep the name."""
    is_bound = bool(listening.getsockname())
    listening.close()
    if is_bound and os.path.lexists(path):
        os.unlink(path)
