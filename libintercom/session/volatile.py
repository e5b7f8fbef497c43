"""What stands in for the journal of a session that has none: the same verbs in memory, for as long as it runs.

Owns remembering a bounded number of messages, finished ones first to be forgotten. Does not own why there is no
journal (``aio`` says it in ``journal_note``).
"""

from __future__ import annotations

from libintercom.session.entries import extend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from libintercom.session.entries import Entry, Standing

# As many as a broker remembers of one sender, twice: a repetition within its memory is recognised here too.
MAX_MESSAGES = 8_192


class Settled:
    """An append that is done: memory never fails."""

    def add_done(self, callback: Callable[[None], object]) -> None:
        callback(None)

    def wait(self, timeout_s: float | None = None) -> None:
        """Nothing to wait for."""


class VolatileJournal:
    """Entries by message, in order of admission; lost with the program."""

    set_aside: str | None = None

    def __init__(self) -> None:
        self._entries: dict[str, list[Entry]] = {}
        self._standings: dict[str, Standing] = {}
        self._admitted = 0

    def append(self, entries: Sequence[Entry]) -> Settled:
        """Remember entries, in order."""
        for entry in entries:
            self._admitted += 1
            standing = extend(self._standings.get(entry.message_id), entry, order=self._admitted)
            self._standings[entry.message_id] = standing
            self._entries.setdefault(entry.message_id, []).append(entry)
        if len(self._standings) > MAX_MESSAGES:
            self._forget()
        return Settled()

    def find(self, message_id: str) -> Standing | None:
        return self._standings.get(message_id)

    def unfinished(self) -> Iterator[Standing]:
        return iter([standing for standing in self._standings.values() if standing.is_unfinished])

    def receipt_rows(self, message_id: str) -> list[Entry]:
        return list(self._entries.get(message_id, ()))

    def close(self) -> None:
        """Nothing is held."""

    def _forget(self) -> None:
        # A tenth at a time, so that looking for what may go is rare.
        finished = [key for key, standing in self._standings.items() if not standing.is_unfinished]
        for key in finished[: MAX_MESSAGES // 10]:
            del self._standings[key], self._entries[key]
