"""Fresh identifiers. Owns randomness, so that nothing else has any."""

from __future__ import annotations

import uuid


def make_id() -> str:
    """A random UUID (version 4)."""
    return str(uuid.uuid4())


def make_ids() -> tuple[str, ...]:
    """The two that a registration may need: its peer ID where none was wanted, and its endpoint's."""
    return make_id(), make_id()
