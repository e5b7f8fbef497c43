"""What a session's end can fail with, beside what its connection can (``libintercom.errors``).

Owns the errors of joining as a session and of using one that is not there. What becomes of a message is an outcome,
never an error.
"""

from __future__ import annotations

from libintercom.errors import EXIT_UNKNOWN, EXIT_UNREACHABLE, EXIT_USAGE, IntercomError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.inbound import Inbound


class NativeIdUnavailable(IntercomError):
    """The native id kept for a name cannot be read or written."""

    def __init__(self, name: str, folder: str, reason: str) -> None:
        super().__init__(name, folder, reason)
        self.name, self.folder, self.reason = name, folder, reason

    def __str__(self) -> str:
        return (
            f"cannot keep a session id for {self.name!r} in {self.folder}: {self.reason}. Make that folder writable, "
            "or join with an explicit id (--session-id)."
        )


class Forked(IntercomError):
    """This program was forked from the one that joined: connection and journal are its parent's."""

    exit_status = EXIT_USAGE

    def __init__(self, owner_pid: int) -> None:
        super().__init__(owner_pid)
        self.owner_pid = owner_pid

    def __str__(self) -> str:
        return (
            f"this session belongs to process {self.owner_pid}, from which this one was forked. Join with a native id "
            "of your own."
        )


class SpawnNotAllowed(IntercomError):
    """A companion asked for a broker to be started, or did not say that none may be."""

    exit_status = EXIT_USAGE

    def __str__(self) -> str:
        return "a companion never starts a broker: connect with spawn=False, literally."


class NotLive(IntercomError):
    """The session has left, or its place was taken by a newer incarnation."""

    exit_status = EXIT_UNREACHABLE

    def __init__(self, during: str, found: str) -> None:
        super().__init__(during, found)
        self.during, self.found = during, found

    def __str__(self) -> str:
        return f"cannot {self.during}: this session {self.found}. Join again."


class JournalStopped(IntercomError):
    """A message cannot be given to the program, for that it was could not be recorded. It is given once it can."""

    def __init__(self, message_id: str, reason: str) -> None:
        super().__init__(message_id, reason)
        self.message_id, self.reason = message_id, reason

    def __str__(self) -> str:
        return (
            f"message {self.message_id} waits: {self.reason} It is on record and is given as soon as that is mended, "
            "at the latest when this session joins again."
        )


class ReplyWithheld(IntercomError):
    """A reply came and could not be recorded first, so it does not count as received. ``reply`` is what came."""

    exit_status = EXIT_UNKNOWN

    def __init__(self, message_id: str, reply: Inbound, reason: str) -> None:
        super().__init__(message_id, reply, reason)
        self.message_id, self.reply, self.reason = message_id, reply, reason

    def __str__(self) -> str:
        return f"the reply to ask {self.message_id} came and was not recorded: {self.reason}"
