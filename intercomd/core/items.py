"""What the spool keeps: one shape for parked children, their input, kept asks, their replies and dead letters.

Owns the shape and its kinds. Does not own what is in them (``parked``, ``kept``, ``letters``), asking for them to be
kept (``storing``) nor where that is (an edge).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from libintercom.wire.frames import decode_json

# The kinds of item; each belongs to one part of the core.
CHILD = "child"
INPUT = "input"
ASK = "ask"
REPLY = "reply"
LETTER = "letter"

# Root and parent of a session, either of which may be missing.
Lineage = tuple[str | None, str | None]


class Author(NamedTuple):
    """Who made something that outlives its session: a peer ID may come back with another lineage, as somebody else."""

    peer_id: str
    lineage: Lineage


@dataclass(slots=True)
class Item:
    """One thing to keep. ``facts`` is a JSON object; ``row`` and ``message`` are JSON bytes as they will be forwarded.

    ``key`` names it for ever: storing another item under the same key replaces it.
    """

    key: str
    kind: str
    facts: bytes
    row: bytes = b""
    message: bytes = b""

    def read(self) -> dict[str, Any]:
        """The facts as they were given to ``Storing.store``."""
        facts: dict[str, Any] = decode_json(self.facts)
        return facts
