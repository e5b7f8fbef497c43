"""What a session needs of the program that reads its messages, and the host of a program that reads by iterating.

Owns the host contract (sessions.md section 2) and ``QueueHost``. Does not own when something is placed (``inbox``) nor
writing down that it was (``engine``).
"""

from __future__ import annotations

from collections import deque

from libintercom.session.pages import cut_page
from libintercom.wire.messages import Host as Abilities
from libintercom.wire.record import Record, required
from libintercom.wire.values import ANYTHING, BOOL, STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any, Protocol, Union

    from libintercom.inbound import Inbound
    from libintercom.wire.reads import Page


class Placeable(Record):
    """One message for the host. ``text``: framed for a model; ``inbound``: as it came; ``wakes``: starts a turn."""

    message_id: str = required(STRING)
    text: str = required(STRING)
    inbound: Inbound = required(ANYTHING)
    wakes: bool = required(BOOL)


class Placement(Record):
    """What a host says of a batch: message ID -> its own entry's ID (``""``: it has none) for each that is placed.

    The others it took in: it says later, by the session's ``placed``, that one stands in its history.
    """

    entries: dict[str, str] = required(ANYTHING)


class Placed(Record):
    """The host's history holds the message; ``entry_id`` is its own ID of it, ``""`` when it has none."""

    entry_id: str = required(STRING)


class Absent(Record):
    """The message is certainly not in the host's history, and will not come into it."""


class CannotTell(Record):
    """The host does not know; the message is never placed again unasked."""

    reason: str = required(STRING)


class EmptyHistory(Record):
    """There is no completed response."""


class EntryNotFound(Record):
    """The response asked for is not there, or no longer."""


class HostFailed(Exception):
    """Raised by a host whose call did not go through: ``find_placement`` is asked what became of the batch."""


if TYPE_CHECKING:
    Finding = Union[Placed, Absent, CannotTell]
    Response = Union[Page, EmptyHistory, EntryNotFound]

    class Host(Protocol):
        """The program behind a session. ``place``, ``find_placement`` and ``last_response`` may be coroutines.

        None of them may block: they are called on the session's loop.
        """

        abilities: Abilities

        def can_accept_asks(self) -> bool:
            """Whether a question that comes now will be looked at soon."""

        def place(self, batch: Sequence[Placeable]) -> Placement | Awaitable[Placement]:
            """Take a batch, in order. Raises HostFailed: it may hold some of it or nothing."""

        def find_placement(self, message_id: str) -> Finding | Awaitable[Finding]:
            """What the host knows of a message that an earlier start handed to it."""

        def wake(self) -> None:
            """Start a turn on what was placed."""

        def last_response(self, entry: str | None, offset: int, limit: int) -> Response | Awaitable[Response]:
            """A page of the last completed response, or of the one with that entry ID. UTF-16 code units."""


# Enough for a reader who pages through one response while newer ones come.
_KEPT_RESPONSES = 32


class QueueHost:
    """The host of a program that iterates over its messages: handing one to the iteration places it.

    Nothing outlives the program, so what was handed to an earlier one and not placed is absent here. ``is_busy`` may
    be set by a program that does not want to be asked now.
    """

    def __init__(self) -> None:
        self.abilities = Abilities(steer=False, wake=True, turn_end=True, prompt_only=False)
        self.is_busy = False
        self._waiting: deque[Placeable] = deque()
        self._responses: deque[tuple[str, str]] = deque(maxlen=_KEPT_RESPONSES)
        self._on_arrival: Callable[[], object] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def can_accept_asks(self) -> bool:
        return not self.is_busy

    def place(self, batch: Sequence[Placeable]) -> Placement:
        """Line up; nothing is placed before the program takes it."""
        self._waiting.extend(batch)
        self.wake()
        return Placement(entries={})

    def find_placement(self, message_id: str) -> Finding:
        """Never placed: what a program takes is written down before it gets it."""
        return Absent()

    def wake(self) -> None:
        if self._on_arrival is not None and self._waiting:
            self._on_arrival()

    def last_response(self, entry: str | None, offset: int, limit: int) -> Response:
        if not self._responses:
            return EmptyHistory()
        wanted = self._responses[-1][0] if entry is None else entry
        for entry_id, text in self._responses:
            if entry_id == wanted:
                return cut_page(entry_id, text, offset, limit)
        return EntryNotFound()

    # ------------------------------------------------------------------ the program's side

    def record_response(self, entry_id: str, text: str) -> None:
        """The program completed a response; others may read it from now on."""
        self._responses.append((entry_id, text))

    def first(self) -> Placeable | None:
        """The message that comes next; it stays in line."""
        return self._waiting[0] if self._waiting else None

    def drop_first(self) -> None:
        """The program has it."""
        self._waiting.popleft()

    def on_arrival(self, tell: Callable[[], Any] | None) -> None:
        """Call ``tell`` when something waits."""
        self._on_arrival = tell
