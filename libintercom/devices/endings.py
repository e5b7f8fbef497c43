"""How a conversation with a device ended, as a transport saw it. Pure.

Owns the words of the cause. Does not own what they mean for a request (``judging``).
"""

from __future__ import annotations

# Why it ended: the command's own end, or something on this side.
EXITED, TIMED_OUT, OVERFLOWED, WITHDRAWN, NOT_STARTED = "exited", "timed_out", "overflowed", "withdrawn", "not_started"


class Ending:
    """How a conversation ended: the ``cause``, the command's exit ``status`` if it has one, ssh's ``last_line``."""

    __slots__ = ("cause", "last_line", "status")

    def __init__(self, cause: str, status: int | None = None, last_line: str = "") -> None:
        self.cause, self.status, self.last_line = cause, status, last_line

    def __repr__(self) -> str:
        return f"Ending({self.cause!r}, {self.status!r}, {self.last_line!r})"
