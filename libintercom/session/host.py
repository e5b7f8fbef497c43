"""What a session needs of the program that reads its messages, and the host of a program that reads by iterating.

Owns the host contract (sessions.md section 2) and ``QueueHost``. Does not own when something is placed (``inbox``),
calling the host (``placing``) nor writing down what it said (``engine``).
"""

from __future__ import annotations

from collections import deque

from libintercom.session.pages import PagedText
from libintercom.session.steps import Placeable
from libintercom.wire.messages import Host as Abilities
from libintercom.wire.record import Record, required
from libintercom.wire.values import ANYTHING, HEX64, STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Any, Protocol, Union

    from libintercom.wire.reads import Page, ReadError


class HostInput(Placeable):
    """A message for the host. ``text``: framed for a model: banner, instructions, the peer's words, attachments.

    ``placed_sha256``: of the peer's words as they stand in the frame, beside ``text_sha256`` of what was sent.
    """

    text: str = required(STRING)
    placed_sha256: str = required(HEX64)


class Placement(Record):
    """What a host says of a batch: message ID to its own entry's ID (``""``: it has none) for each that is placed.

    The others it took in: it says by the session's ``placed`` once they stand in its history.
    """

    entries: Mapping[str, str] = required(ANYTHING)


class Placed(Record):
    """The host's history holds the message; ``entry_id`` is its own ID of it, ``""`` when it has none."""

    entry_id: str = required(STRING)


class Absent(Record):
    """The message is certainly not in the host's history, and will not come into it by itself."""


class CannotTell(Record):
    """The host does not know; the message is never placed again unasked."""

    reason: str = required(STRING)


class EmptyHistory(Record):
    """There is no completed response."""


class EntryNotFound(Record):
    """The response asked for is not there, or no longer."""


class HostRefused(Exception):
    """Raised by ``place``: nothing of the batch is with the host. It is offered again at the next occasion."""


class HostFailed(Exception):
    """Raised by a host whose call broke off: nobody can say what became of the batch, or what was asked."""


if TYPE_CHECKING:
    Finding = Union[Placed, Absent, CannotTell]
    Response = Union[Page, ReadError, EmptyHistory, EntryNotFound]

    class Host(Protocol):
        """The program behind a session. ``place``, ``find_placement`` and ``last_response`` may be coroutines.

        None of them may block: they are called on the session's loop, one placement after the other.
        """

        @property
        def abilities(self) -> Abilities:
            """What others are told that it can do with a message."""

        @property
        def reply_call(self) -> str:
            """How its reader answers a question, for the frame (``texts.TOOL_REPLY_CALL``); ``""``: it knows."""

        def can_accept_asks(self) -> bool:
            """Whether a question that comes now will be looked at soon."""

        def place(self, batch: Sequence[HostInput]) -> Placement | Awaitable[Placement]:
            """Take a batch, in order. Raises HostRefused or HostFailed."""

        def find_placement(self, message_id: str) -> Finding | Awaitable[Finding]:
            """What the host knows of a message that was handed to it, maybe before this program started."""

        def wake(self) -> None:
            """Start a turn on what was placed."""

        def last_response(self, entry: str | None, offset: int, limit: int) -> Response | Awaitable[Response]:
            """A page of the last completed response, or of the one with that entry ID (``pages.PagedText``)."""


# Enough for readers who page through one response while newer ones come.
KEPT_RESPONSES = 32


class QueueHost:
    """The host of a program that iterates over its messages: handing one to the iteration places it.

    Nothing of it outlives the program, so what was handed to an earlier one and not placed is absent here. A program
    that does not want to be asked now sets ``is_busy``.
    """

    reply_call = ""

    def __init__(self) -> None:
        self.is_busy = False
        self._is_open = True
        self._waiting: deque[HostInput] = deque()
        self._responses: deque[PagedText] = deque(maxlen=KEPT_RESPONSES)
        self._on_arrival: Callable[[], object] | None = None

    @property
    def backlog(self) -> int:
        """How many messages are in line. It is no ``__len__``, for a host with an empty line is a host all the same."""
        return len(self._waiting)

    @property
    def abilities(self) -> Abilities:
        # Nothing interrupts a program in its work; it reads on when it asks for the next message, which ends a turn.
        return Abilities(steer=False, wake=True, turn_end=True, prompt_only=False)

    def can_accept_asks(self) -> bool:
        return not self.is_busy

    def place(self, batch: Sequence[HostInput]) -> Placement:
        """Line up; nothing is placed before the program takes it. Raises HostRefused once it was withdrawn."""
        if not self._is_open:
            raise HostRefused("the session leaves")
        self._waiting.extend(batch)
        self.wake()
        return Placement(entries={})

    def find_placement(self, message_id: str) -> Finding:  # noqa: ARG002 - the contract's signature
        """Never placed: that a program takes a message is written down before it gets it."""
        return Absent()

    def wake(self) -> None:
        if self._on_arrival is not None and self._waiting:
            self._on_arrival()

    def last_response(self, entry: str | None, offset: int, limit: int) -> Response:
        if not self._responses:
            return EmptyHistory()
        wanted = self._responses[-1].entry_id if entry is None else entry
        for response in self._responses:
            if response.entry_id == wanted:
                return response.page(offset, limit)
        return EntryNotFound()

    # ------------------------------------------------------------------ the program's side

    def record_response(self, entry_id: str, text: str) -> None:
        """The program completed a response; others may read it from now on."""
        self._responses.append(PagedText(entry_id, text))

    def first(self) -> HostInput | None:
        """The message that comes next; it stays in line."""
        return self._waiting[0] if self._waiting else None

    def drop_first(self) -> HostInput:
        """The program gets it."""
        return self._waiting.popleft()

    def open(self) -> None:
        """Take messages in, for the first time or after ``withdraw``."""
        self._is_open = True

    def withdraw(self) -> tuple[str, ...]:
        """Let go of everything that the program did not take, and take in nothing more: the message IDs, in order."""
        self._is_open = False
        left = tuple(one.message_id for one in self._waiting)
        self._waiting.clear()
        return left

    def on_arrival(self, tell: Callable[[], Any] | None) -> None:
        """Call ``tell`` when something waits."""
        self._on_arrival = tell
