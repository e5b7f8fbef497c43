"""Entries for a journal under test, and where its files stand.

Owns short ways to say what is appended. Does not own any judgement.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from libintercom.session.entries import Entry
from libintercom.session.journal import Retention

if TYPE_CHECKING:
    from collections.abc import Iterator

# Memory, where the machine has a folder of it: these tests ask what is in the files, not whether a disk keeps them.
_MEMORY = "/dev/shm"
_numbers = itertools.count(1)

# Entries of these tests have small round times, long before any retention of the real clock.
FOREVER = Retention(keep_ms=10**15)
# Long enough for a commit on a busy disk.
WAIT_S = 10.0


def admitted(message_id: str, text: str = "text", *, is_ask: bool = False, at_ms: int = 1_000) -> Entry:
    content = {"id": message_id, "content": {"text": text}, "expectsReply": is_ask}
    body = {"from": {"id": "ann"}, "message": content, "receivedAt": at_ms, "textSha256": "0" * 64}
    return Entry(entry_id=f"e{next(_numbers)}", message_id=message_id, kind="admitted", at_ms=at_ms, body=body)


def noted(message_id: str, kind: str, at_ms: int = 1_000, **body: object) -> Entry:
    return Entry(entry_id=f"e{next(_numbers)}", message_id=message_id, kind=kind, at_ms=at_ms, body=body)


def whole_life(message_id: str, text: str = "text", at_ms: int = 1_000) -> list[Entry]:
    """Admitted, queued, handed and placed: nothing is left to be done."""
    later = [noted(message_id, kind, at_ms) for kind in ("queued", "handed")]
    return [admitted(message_id, text, at_ms=at_ms), *later, noted(message_id, "placed", at_ms, placement="p")]


@contextmanager
def private_place() -> Iterator[str]:
    """A private folder for a folder of journals, removed at the end."""
    made = tempfile.mkdtemp(prefix="ijt-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
