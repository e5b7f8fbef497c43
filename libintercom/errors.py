"""Every failure a program of ours can show: parts as attributes, one sentence, an exit status.

Owns the tree of errors that callers catch. Does not own wire refusals (``libintercom.wire.codes``) nor
how a command prints a failure (``intercomctl.failures``). Exit statuses: see house.md section 6 and
``intercomctl --help``.
"""

from __future__ import annotations

# Exit statuses are a contract with scripts; each has one meaning.
EXIT_DONE = 0
EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_UNKNOWN = 3
EXIT_UNREACHABLE = 4
EXIT_NO_REPLY = 5
EXIT_BUG = 70
EXIT_INTERRUPTED = 130


class IntercomError(Exception):
    """Base of every expected failure. ``exit_status`` says how a program ends on it."""

    exit_status = EXIT_REFUSED


class InvalidConfiguration(IntercomError):
    """A setting cannot be used. Nothing falls back to another value silently."""

    exit_status = EXIT_USAGE

    def __init__(self, source: str, key: str, reason: str, remedy: str = "") -> None:
        super().__init__(source, key, reason, remedy)
        self.source, self.key, self.reason, self.remedy = source, key, reason, remedy

    def __str__(self) -> str:
        tail = f" {self.remedy}" if self.remedy else ""
        return f"invalid configuration in {self.source}, {self.key}: {self.reason}.{tail}"


class InvalidLineage(IntercomError):
    """The lineage variables of the environment form no valid identity (seeds, "Discovery and groups")."""

    exit_status = EXIT_USAGE

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"invalid session lineage: {self.reason}. Set PI_INTERCOM_ROOT_SESSION_ID and "
            "PI_INTERCOM_PARENT_SESSION_ID both to the main's exact session id (child), or neither (main)."
        )


class UnsafeDirectory(IntercomError):
    """The runtime directory cannot be trusted. It is never deleted or repaired."""

    exit_status = EXIT_UNREACHABLE

    def __init__(self, path: str, reason: str, owner: str = "") -> None:
        super().__init__(path, reason, owner)
        self.path, self.reason, self.owner = path, reason, owner

    def __str__(self) -> str:
        owner = f" (owner: {self.owner})" if self.owner else ""
        return (
            f"refusing the runtime directory {self.path}{owner}: {self.reason}. Pre-provision a private "
            "directory (mode 0700, yours, local filesystem) and set PI_INTERCOM_RUNTIME_DIR to it for every "
            "process that shares this broker."
        )


class Unreachable(IntercomError):
    """Base of every "there is nobody to talk to": ``path`` is the socket path that was tried."""

    exit_status = EXIT_UNREACHABLE

    def __init__(self, path: str, found: str) -> None:
        super().__init__(path, found)
        self.path, self.found = path, found

    def __str__(self) -> str:
        return f"cannot reach intercomd at {self.path}: {self.found}."


class NotRunning(Unreachable):
    """No socket (ENOENT) or no listener behind it (ECONNREFUSED). ``remedy`` is a sentence."""

    def __init__(self, path: str, found: str, remedy: str = "Start it: intercomctl broker start") -> None:
        super().__init__(path, found)
        self.remedy = remedy

    def __str__(self) -> str:
        return f"intercomd is not running ({self.found} at {self.path}). {self.remedy}"


class NotPermitted(Unreachable):
    """EACCES or EPERM: a sandbox or a foreign owner. Never read as "not running", never a reason to spawn."""

    def __str__(self) -> str:
        return (
            f"not permitted to connect to {self.path} ({self.found}). A broker may well be running: allow this "
            "program to use that Unix socket, or run it outside its sandbox."
        )


class ForeignOwner(Unreachable):
    """Another uid listens at our path."""

    def __str__(self) -> str:
        return f"refusing the broker at {self.path}: {self.found}. Only a broker of your own user is trusted."


class Busy(Unreachable):
    """The listener exists and its backlog stayed full (EAGAIN)."""

    def __str__(self) -> str:
        return f"intercomd at {self.path} is busy: {self.found}. Try again in a moment."


class NotStarted(Unreachable):
    """A broker could not be started within its deadline; ``found`` says what the candidates reported."""

    def __str__(self) -> str:
        return f"intercomd did not start at {self.path}: {self.found}."


class UncertainOwner(Unreachable):
    """Records say that another broker may be alive; nothing is started, killed or taken over."""

    def __str__(self) -> str:
        return f"not starting a second broker at {self.path}: {self.found}."


class Disconnected(IntercomError):
    """The connection ended before a request was answered. What became of a message is told by its outcome instead."""

    exit_status = EXIT_UNREACHABLE

    def __init__(self, during: str, reason: str) -> None:
        super().__init__(during, reason)
        self.during, self.reason = during, reason

    def __str__(self) -> str:
        return f"the connection to intercomd ended during {self.during}: {self.reason}."


class NotRegistered(IntercomError):
    """The broker did not answer a registration; nothing was joined.

    ``is_retryable``: the connection ended before any answer, as it does when a broker is just leaving.
    """

    exit_status = EXIT_UNREACHABLE

    def __init__(self, reason: str, *, is_retryable: bool = False) -> None:
        super().__init__(reason, is_retryable)
        self.reason, self.is_retryable = reason, is_retryable

    def __str__(self) -> str:
        remedy = " It may be leaving, or was ended; try again in a moment." if self.is_retryable else ""
        return f"intercomd did not accept the registration: {self.reason}.{remedy}"


class InvalidFrame(IntercomError):
    """Bytes that are no frame of the protocol. The connection that carried them ends."""

    exit_status = EXIT_UNKNOWN

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"invalid intercom frame: {self.reason}"


class TooLarge(IntercomError):
    """A payload beyond the frame limit; nothing of it was written."""

    exit_status = EXIT_USAGE

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(size_bytes, limit_bytes)
        self.size_bytes, self.limit_bytes = size_bytes, limit_bytes

    def __str__(self) -> str:
        return f"Intercom message too large ({self.size_bytes} bytes; max {self.limit_bytes})"


class InvalidMessage(IntercomError):
    """A message broke a value rule before it left this program; nothing was sent."""

    exit_status = EXIT_USAGE

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"invalid message: {self.reason}"


class InvalidGuard(InvalidMessage):
    """A guarded message is not whole, or is what such a message cannot be; nothing was sent (wire.md 9.3)."""


class GuardUnsupported(IntercomError):
    """Guarded delivery was not negotiated with this broker; nothing was sent, least of all as an ordinary message."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"no guarded delivery: {self.reason}"


class InvalidRead(IntercomError):
    """A read, or the answer to one, breaks a value rule; nothing was said."""

    exit_status = EXIT_USAGE

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"invalid read: {self.reason}"


class ReadFailed(IntercomError):
    """A read ended without a page or receipt. ``code`` is one of ``libintercom.wire.reads.CODES``.

    ``peer_id`` is whom it reached, ``""`` when it reached nobody.
    """

    def __init__(self, code: str, reason: str, peer_id: str = "") -> None:
        super().__init__(code, reason, peer_id)
        self.code, self.reason, self.peer_id = code, reason, peer_id
        if code in ("peer_offline", "timeout"):
            self.exit_status = EXIT_UNREACHABLE

    def __str__(self) -> str:
        return self.reason


class InvalidProfile(IntercomError):
    """What a program says about itself breaks a value rule; it was not registered or changed."""

    exit_status = EXIT_USAGE

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"invalid session description: {self.reason}"


class NoPendingAsk(IntercomError):
    """A reply fits no open question, or more than one; nothing was sent."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class Unsupported(IntercomError):
    """The broker that answers is older than this request; sending it would end the connection."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"the running broker does not know {self.what}; it is older than this program."


class ParkRefused(IntercomError):
    """The broker did not park, or unpark, a child; nothing changed. ``code``: see wire.md 9.5."""

    def __init__(self, child_id: str, code: str) -> None:
        super().__init__(child_id, code)
        self.child_id, self.code = child_id, code

    def __str__(self) -> str:
        reason, remedy = _PARK_REASONS.get(self.code, (f"the broker says {self.code!r}", "see its log"))
        return f"child {self.child_id} was not parked or unparked: {reason}; {remedy}"


_PARK_REASONS = {
    "not_your_child": (
        "it is no child of this main's group, as far as the broker has seen",
        "park a child after it registered with this main as its root",
    ),
    "child_live": ("it is back and is being given what waited for it", "unpark it when it is gone"),
    "limit": ("as many children are parked as one main may have", "unpark some that will not come back"),
    "has_input": ("messages wait for it", "say discard to give them up"),
    "store_failed": ("the broker could not store it", "see its log, mend the disk, park it again"),
}


class Refused(IntercomError):
    """The broker refused; nothing was delivered. ``code`` is from ``libintercom.wire.codes``."""

    def __init__(self, message_id: str, code: str, reason: str, retryable: bool = False) -> None:
        super().__init__(message_id, code, reason, retryable)
        self.message_id, self.code, self.reason, self.retryable = message_id, code, reason, retryable

    def __str__(self) -> str:
        return self.reason


class OutcomeUnknown(IntercomError):
    """A message left and its acknowledgement never came. Do not send it again blindly."""

    exit_status = EXIT_UNKNOWN

    def __init__(self, message_id: str, reason: str) -> None:
        super().__init__(message_id, reason)
        self.message_id, self.reason = message_id, reason

    def __str__(self) -> str:
        return (
            f"delivery unknown: {self.reason} (message {self.message_id}). The message may have arrived; check the "
            "recipient before sending again."
        )


class NoReply(IntercomError):
    """An accepted ask ended without a reply. ``ended_by``: timeout, cancelled, peer_left, disconnected, peer_busy."""

    exit_status = EXIT_NO_REPLY

    def __init__(self, message_id: str, to: str, ended_by: str, reason: str) -> None:
        super().__init__(message_id, to, ended_by, reason)
        self.message_id, self.to, self.ended_by, self.reason = message_id, to, ended_by, reason

    def __str__(self) -> str:
        return self.reason


class TimedOut(IntercomError):
    """A request other than a send got no answer in time."""

    exit_status = EXIT_UNREACHABLE

    def __init__(self, during: str, timeout_s: float) -> None:
        super().__init__(during, timeout_s)
        self.during, self.timeout_s = during, timeout_s

    def __str__(self) -> str:
        return f"intercomd did not answer {self.during} within {self.timeout_s:g} s."
