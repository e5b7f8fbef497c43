"""How long and how much a journal keeps.

Owns the limits and their defaults. Does not own removing anything (``collecting``).
"""

from __future__ import annotations

from libintercom.wire.record import Record, required
from libintercom.wire.values import COUNT

_DAY_MS = 24 * 60 * 60 * 1000

# A message that comes again is known for as long: far longer than any broker keeps one (7 days), and long enough to
# answer for a receipt after a holiday.
KEEP_MS = 90 * _DAY_MS
# About 200,000 messages of 512 bytes; then the texts of finished messages go, oldest first, and their facts stay.
MAX_BYTES = 256 * 1024 * 1024


class Retention(Record):
    """``keep_ms``: finished messages, and files set aside, are kept so long after their last entry.

    ``max_bytes``: of one journal. From three quarters on, texts of finished messages are dropped, oldest first, and
    their facts stay (the body then says ``trimmed``). Neither ever removes an unfinished message; a journal that is
    full of those takes no more entries and says so.
    """

    keep_ms: int = required(COUNT)
    max_bytes: int = required(COUNT)

    def __init__(self, keep_ms: int = KEEP_MS, max_bytes: int = MAX_BYTES) -> None:
        super().__init__(keep_ms=keep_ms, max_bytes=max_bytes)


DEFAULT_RETENTION = Retention()
