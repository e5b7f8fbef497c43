"""Reads of one session by another: a question carried to its owner, and exactly one answer back (wire.md 9.4).

Owns open reads: who may begin one, which answer settles it, and how it ends without one. Nothing is delivered and
nobody is woken. The token is known to the broker and the owner only, and counts on the owner's connection alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from intercomd.core import refusals
from libintercom.targets import FOUND, resolve
from libintercom.wire.answers import ReadRequest, ReadResult
from libintercom.wire.reads import (
    LAST,
    NativeReceipt,
    Page,
    ReadError,
    clamp_limit,
    error_fits,
    page_fits,
    receipt_fits,
)
from libintercom.wire.values import size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from intercomd.core.roster import Connection, Session
    from intercomd.core.state import State
    from libintercom.wire.requests import Read, ReadResponse

    Charge = Callable[[Connection, int], None]

# What a question or an answer takes beside a page's text, roughly; receipts hold labels only.
_FRAME_BYTES = 1_024


@dataclass(slots=True, eq=False)
class OpenRead:
    """A question on its way: ``offset`` and ``limit`` as the owner was asked."""

    token: str
    reader: Connection
    reader_id: str
    owner: Session
    frame: Read
    offset: int
    limit: int

    @property
    def key(self) -> tuple[str, str]:
        return ("read", self.token)


class Reads:
    """Carries reads on the shared state. ``charge``: bytes of answers count like input of whoever asked for them."""

    def __init__(self, state: State, charge: Charge) -> None:
        self._state, self._charge = state, charge
        self._open: dict[str, OpenRead] = {}
        self._of_reader: dict[str, dict[str, OpenRead]] = {}
        self._of_owner: dict[str, dict[str, OpenRead]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[OpenRead]:
        """What is open, oldest first."""
        return iter(list(self._open.values()))

    def is_allowed(self, connection: Connection) -> bool:
        """Whether a connection negotiated any kind of read."""
        session = connection.session
        return session is not None and (session.has_ext or session.has_receipts)

    def read(self, connection: Connection, frame: Read, token: str) -> None:
        """Ask the owner, or say at once why not. ``token`` is fresh."""
        reader = connection.session
        if reader is None:
            raise ValueError(f"connection {connection.conn} cannot read")
        aimed = self._judge(reader, frame)
        if isinstance(aimed, ReadError):
            self._tell(connection, frame, error=aimed)
            return
        offset, limit = int(frame.offset or 0), clamp_limit(frame.limit)
        opened = OpenRead(token, connection, reader.peer_id, aimed, frame, offset, limit)
        self._open[token] = opened
        self._of_reader.setdefault(reader.peer_id, {})[token] = opened
        self._of_owner.setdefault(aimed.peer_id, {})[token] = opened
        state = self._state
        state.deadlines.set(opened.key, state.turn.now + state.limits.read_timeout_s)
        state.turn.write(aimed.conn, _question(opened))

    def respond(self, connection: Connection, frame: ReadResponse) -> None:
        """An owner answers; what settles no read of this very connection is ignored."""
        opened = self._open.get(frame.token)
        if opened is None or opened.owner.conn != connection.conn:
            return
        answer = _fitting_answer(opened, frame)
        if answer is None:
            self._fail(opened, "invalid_response", "its answer does not fit the question; update that session")
        else:
            self._settle(opened, answer)

    def time_out(self, token: str) -> None:
        """The owner had its time."""
        wait_s = self._state.limits.read_timeout_s
        self._fail(self._open[token], "timeout", f"no answer came within {wait_s:g} s; check that session, then retry")

    def leave(self, peer_id: str) -> None:
        """A session left: what it read ends unheard, what was read from it ends for its readers."""
        for opened in list(self._of_reader.get(peer_id, {}).values()):
            self._end(opened)
        for opened in list(self._of_owner.get(peer_id, {}).values()):
            self._fail(opened, "peer_offline", "it left before it answered; list the sessions")

    def _judge(self, reader: Session, frame: Read) -> Session | ReadError:
        """Whom to ask, or the first thing that forbids it."""
        if not _can_read(reader, frame.kind):
            return _error(frame, "unsupported", "this session did not negotiate such reads; register with them")
        limit = self._state.limits.reads_per_session
        if len(self._of_reader.get(reader.peer_id, ())) >= limit:
            return _error(frame, "rate_limited", f"{limit} reads of this session are open (limit {limit}); await one")
        circles = self._state.roster.circles_for(reader.registered)
        found = resolve(frame.to, [circle.index for circle in circles], reader.peer_id)
        if found.kind != FOUND:
            refusal = refusals.unresolved("", frame.to, found, self._state.roster, reader, may_search=False)
            return ReadError(code=refusal.code or "", reason=refusal.reason)
        return self._judge_owner(frame, found.ids[0])

    def _judge_owner(self, frame: Read, peer_id: str) -> Session | ReadError:
        state = self._state
        owner = state.roster.sessions.get(peer_id)
        if owner is None:
            return _error(frame, "peer_offline", "it is not connected; read again when it is back")
        if not _can_read(owner, frame.kind):
            return _error(frame, "unsupported", "that session does not answer such reads; update it")
        if owner.row.is_stalled:
            after_s = state.limits.stalled_after_s
            return _error(frame, "peer_offline", f"its connection has taken nothing for {after_s:g} s; check it")
        if state.roster.connections[owner.conn].waiting_bytes > state.limits.recipient_bytes:
            return _error(frame, "rate_limited", "too much waits for that session; retry when some was taken")
        return owner

    def _fail(self, opened: OpenRead, code: str, found: str) -> None:
        self._settle(opened, {"error": _error(opened.frame, code, found)})

    def _settle(self, opened: OpenRead, answer: dict[str, Any]) -> None:
        self._end(opened)
        self._tell(opened.reader, opened.frame, peer_id=opened.owner.peer_id, **answer)

    def _tell(self, reader: Connection, frame: Read, **told: Any) -> None:
        self._state.turn.write(reader.conn, ReadResult(request_id=frame.request_id, kind=frame.kind, **told))
        page = told.get("page")
        self._charge(reader, _FRAME_BYTES + (size_of(page.text) if page is not None else 0))

    def _end(self, opened: OpenRead) -> None:
        self._state.deadlines.clear(opened.key)
        del self._open[opened.token]
        for reads, peer_id in ((self._of_reader, opened.reader_id), (self._of_owner, opened.owner.peer_id)):
            del reads[peer_id][opened.token]
            if not reads[peer_id]:
                del reads[peer_id]


def _can_read(session: Session, kind: str) -> bool:
    """``last`` is part of ``ext:1``, receipts were negotiated by themselves (wire.md 9.1)."""
    return session.has_ext if kind == LAST else session.has_receipts


def _question(opened: OpenRead) -> ReadRequest:
    frame = opened.frame
    if frame.kind == LAST:
        entry = {} if frame.entry_id is None else {"entry_id": frame.entry_id}
        return ReadRequest(token=opened.token, kind=LAST, offset=opened.offset, limit=opened.limit, **entry)
    return ReadRequest(
        token=opened.token, kind=frame.kind, root_session_id=frame.root_session_id, message_id=frame.message_id
    )


def _fitting_answer(opened: OpenRead, frame: ReadResponse) -> dict[str, Any] | None:
    """The one answer that fits the question, by the member it stands in; None when there is none, or several."""
    members = {"page": frame.page, "receipt": frame.receipt, "error": frame.error}
    given = [(name, value) for name, value in members.items() if value is not None]
    if frame.kind != opened.frame.kind or len(given) != 1:
        return None
    name, value = given[0]
    return {name: value} if _fits(opened, value) else None


def _fits(opened: OpenRead, answer: object) -> bool:
    frame = opened.frame
    if isinstance(answer, ReadError):
        return error_fits(answer, frame.kind)
    if frame.kind == LAST:
        return isinstance(answer, Page) and page_fits(answer, frame.entry_id, opened.offset, opened.limit)
    if not isinstance(answer, NativeReceipt) or not receipt_fits(answer, frame.root_session_id, frame.message_id):
        return False
    # A fork or a new root cannot attest what another root's journal holds.
    return opened.owner.root in (None, frame.root_session_id)


def _error(frame: Read, code: str, found: str) -> ReadError:
    return ReadError(code=code, reason=f'Read of "{refusals.clip(frame.to)}": {found}')
