"""The reading connection of an open journal.

Owns when it looks at the newest state and when it stays at one. Does not own any lock: its caller holds one.

The index changes only when it is folded, and every message that arrives is looked up in it, mostly in vain. So the
view stays at one state between foldings: that saves locking and checking the log at each look-up, more than half of
its cost. What was appended since is in memory, or read after letting go.
"""

from __future__ import annotations

from libintercom.session.journal import store
from libintercom.session.journal.schema import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.session.entries import Entry


class View:
    """``may_stay``: whether a state may be held; not while the log is to start anew."""

    def __init__(self, path: str) -> None:
        self._connection = connect(path, is_reader=True)
        self.may_stay = True

    def place(self, message_id: str) -> tuple[int, int]:
        """First and last number of a message of the index; zeros when it is not there."""
        if self.may_stay and not self._connection.in_transaction:
            self._connection.execute("BEGIN")
        return store.find_message(self._connection, message_id) or (0, 0)

    def chain(self, last: int) -> list[tuple[int, Entry, int]]:
        """The stored entries of one message, oldest first."""
        self.release()
        return store.read_chain(self._connection, last)

    def unfinished(self, after: int, count: int) -> list[tuple[int, str]]:
        """The next of the index that are unfinished: place in the order of admission, message id."""
        self.release()
        return store.read_unfinished(self._connection, after, count)

    def release(self) -> None:
        """Look at the newest state from now on."""
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()
