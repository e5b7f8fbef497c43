"""The one line that a candidate reports to the starter that launched it. Owns the line and the pipe it goes to."""

from __future__ import annotations

import json
import os

READY = "ready"


class Reporter:
    """Writes one report, ever. Without a pipe (nobody launched us) it says nothing."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd

    def ready(self) -> None:
        """The broker accepts registrations."""
        self.report(READY)

    def report(self, result: str, reason: str = "", *, is_doubtful: bool = False) -> bool:
        """Send ``result`` (``libintercom.launching`` names them) and close the pipe; ``False`` when there is none.

        A repeated call does nothing. A starter that gave up waiting (EPIPE) looks at the endpoint itself.
        """
        fd, self._fd = self._fd, None
        if fd is None:
            return False
        value: dict[str, object] = {"result": result}
        if reason:
            value["reason"] = reason
        if is_doubtful:
            value["doubtful"] = True
        try:
            os.write(fd, json.dumps(value).encode("ascii") + b"\n")
        except OSError:
            pass
        finally:
            os.close(fd)
        return True
