"""Faults for a trial's broker: each must be seen by the trial named here.

Owns their code, which a broker runs before it begins (``sitecustomize``), and what the trial must say.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass


@dataclass(frozen=True)
class Plant:
    """``told`` is a part of the violation that ``trial`` must report."""

    trial: str
    told: str
    code: str

    def write(self, folder: str) -> str:
        """Put it where a broker that imports from ``folder`` first finds it; returns the folder."""
        with open(f"{folder}/sitecustomize.py", "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(self.code))
        return folder


PLANTS = {
    "a recipient's queue has no end": Plant(
        "stopped-reader",
        "growth",
        """
        from intercomd.core.quotas import Quotas
        Quotas.recipient_excess = lambda *_: None
        """,
    ),
    "refusals tell no limit": Plant(
        "stopped-reader",
        "untruth",
        """
        from intercomd.core import refusals
        over = refusals.over_limit
        refusals.over_limit = lambda *given: over(*given).replace(limit=None, reason="no")
        """,
    ),
    "a rate never opens again": Plant(
        "promises",
        "refused after the told time",
        """
        from intercomd.core.quotas import Bucket
        level = Bucket.level
        Bucket.level = lambda self, now: level(self, 0.0)
        Bucket.wait_s = lambda self, now, wanted: 0.05
        """,
    ),
    "what is held of a frame is there twice": Plant(
        "half-frames",
        "growth",
        """
        from libintercom.wire.frames import FrameReader
        hold, kept = FrameReader._hold, []
        def keep(self, part):
            kept.append(bytearray(part))
            hold(self, part)
        FrameReader._hold = keep
        """,
    ),
    "a slow frame has too little time": Plant(
        "slow-clients",
        "ended before their time",
        """
        from intercomd.core.flow import Flow
        def hurry(self, connection):
            state = self._state
            state.deadlines.set(("frame", connection.conn), state.turn.now + state.limits.frame_timeout_s / 2)
        Flow._await_frame = hurry
        """,
    ),
    "strangers are closed for queueing": Plant(
        "strangers",
        "closed",
        """
        from intercomd.core.effects import Close
        from intercomd.core.flow import Flow
        count = Flow.count_unregistered
        def evict(self, connection):
            count(self, connection)
            if len(self._unregistered) > 30:
                self._state.turn.add(Close(min(self._unregistered), "too many"))
        Flow.count_unregistered = evict
        """,
    ),
    "a message is lost now and then": Plant(
        "soak",
        "LOST",
        """
        from intercomd.edges.listener.output import Output
        append, seen = Output.append_message, [0]
        def lose(self, sender, message, token):
            seen[0] += 1
            if seen[0] % 97 == 0:
                message = message.replace(b"soak-message", b"lost-message")
            append(self, sender, message, token)
        Output.append_message = lose
        """,
    ),
}
