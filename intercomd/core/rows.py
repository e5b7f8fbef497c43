"""A session's row as JSON bytes, for each kind of reader (wire.md 2.1, 8.2, 9.1).

Owns what a row shows and its cached bytes. Does not own who may see it (``roster``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from libintercom.wire.frames import encode_json
from libintercom.wire.record import ABSENT, dump_record

if TYPE_CHECKING:
    from libintercom.wire.messages import Registration

# Members that a row takes from the registration or presence as they are; the rest is the broker's word.
_SHOWN = (
    ("project_id", "projectId"),
    ("status", "status"),
    ("pending_asks", "pendingAsks"),
    ("accepts_asks", "acceptsAsks"),
    ("runtime_fallback_alias", "runtimeFallbackAlias"),
    ("context_pct", "contextPct"),
    ("context_tokens", "contextTokens"),
    ("context_window", "contextWindow"),
    ("tmux_pane", "tmuxPane"),
)
# Shown to those who negotiated ``ext:1`` only.
_SHOWN_EXTENDED = (
    ("root_session_id", "rootSessionId"),
    ("parent_session_id", "parentSessionId"),
    ("incarnation", "incarnation"),
)

# Shown to those who negotiated ``guardedDelivery:1``; the first two are shared with ``ext:1``.
_SHOWN_GUARDED = (
    ("root_session_id", "rootSessionId"),
    ("incarnation", "incarnation"),
)

# What a row may still grow by: three times of the broker's own (13 digits), and that it is stalled.
_GROWTH_BYTES = 3 * 13 + len(',"stalled":true')


class RowBytes:
    """The bytes of one session's row: a cached head, and the times that change with every frame."""

    def __init__(self, peer_id: str, session: Registration, epoch: str, at_ms: int, *, has_guard: bool = False) -> None:
        self.peer_id, self.session, self.epoch = peer_id, session, epoch
        # Whether the session itself takes guarded messages.
        self.has_guard = has_guard
        self.started_at = at_ms if session.started_at is None else session.started_at
        self.last_seen_ms = at_ms if session.last_seen is None else session.last_seen
        self.last_intercom_ms: float = session.last_intercom_activity or 0
        self.is_stalled = False
        # Members that only a parked child's row has, as JSON; shown to those who negotiated ``ext:1``.
        self._parked = b""
        self._heads: dict[tuple[bool, bool], bytes] = {}
        # The whole row as it is, for each kind of reader; empty when it changed since. Lists of thousands read these.
        self.plain = self.extended = b""
        # The same for readers with guarded delivery, by whether they have ``ext:1`` too.
        self._guarded: dict[bool, bytes] = {}
        self._owner: object = None
        self._stale_in: tuple[set[Any], ...] = ()

    def seen(self, at_ms: int) -> None:
        """The session was heard."""
        # Within one millisecond nothing changes, so a busy session's row is composed once a moment.
        if at_ms != self.last_seen_ms:
            self.last_seen_ms = at_ms
            self._forget()

    def exchanged(self, at_ms: int) -> None:
        """The session sent or was sent a message."""
        if at_ms != self.last_intercom_ms or at_ms != self.last_seen_ms:
            self.last_seen_ms = self.last_intercom_ms = at_ms
            self._forget()

    def change(self, session: Registration) -> None:
        """The registered facts changed by presence."""
        self.session = session
        self._heads.clear()
        self._forget()

    def correct_activity(self, at_ms: float) -> None:
        """The session says when it last exchanged a message."""
        self.last_intercom_ms = at_ms
        self._forget()

    def stall(self, *, is_stalled: bool) -> None:
        """The session's socket stopped, or began again, to take bytes."""
        self.is_stalled = is_stalled
        self._forget()

    def park(self, queued: int, failure: dict[str, Any] | None) -> None:
        """So much input waits for a parked child, and this became of waking it last (wire.md 9.5)."""
        told = {"parked": True, "queuedInput": queued, **({"lastWakeFailure": failure} if failure else {})}
        self._parked = b"," + encode_json(told)[1:-1]
        self._forget()

    def render(self, *, is_extended: bool, is_guarded: bool = False) -> bytes:
        """The row's JSON object for a reader with ``ext:1``, with ``guardedDelivery:1``, both or neither."""
        if is_guarded:
            made = self._guarded.get(is_extended)
            if made is None:
                made = self._guarded[is_extended] = self._compose(is_extended=is_extended, is_guarded=True)
            return made
        if is_extended:
            self.extended = self.extended or self._compose(is_extended=True)
            return self.extended
        self.plain = self.plain or self._compose(is_extended=False)
        return self.plain

    def size_bytes(self) -> int:
        """The size of the row at its largest, whatever comes to it without being asked."""
        return len(self._compose(is_extended=True, is_guarded=True)) + _GROWTH_BYTES

    def watch(self, owner: object, stale: set[Any]) -> None:
        """From now on ``owner`` joins ``stale`` whenever its row is no longer what was rendered."""
        self._owner = owner
        self._stale_in = (*self._stale_in, stale)

    def unwatch(self, stale: set[Any]) -> None:
        """No longer."""
        self._stale_in = tuple(one for one in self._stale_in if one is not stale)
        if not self._stale_in:
            # Who left must be freed at once, not when cycles are looked for: thousands may leave in between.
            self._owner = None

    def _forget(self) -> None:
        if self.plain or self.extended or self._guarded:
            self.plain = self.extended = b""
            self._guarded.clear()
            for stale in self._stale_in:
                stale.add(self._owner)

    def _compose(self, *, is_extended: bool, is_guarded: bool = False) -> bytes:
        head = self._heads.get((is_extended, is_guarded))
        if head is None:
            # Without its closing brace: the changing members follow.
            facts = self._facts(is_extended=is_extended, is_guarded=is_guarded)
            head = self._heads[is_extended, is_guarded] = encode_json(facts)[:-1]
        stalled = b',"stalled":true' if is_extended and self.is_stalled else b""
        parked = self._parked if is_extended else b""
        seen = self.last_seen_ms
        times = f',"lastSeen":{seen},"lastActivity":{seen},"lastIntercomActivity":{self.last_intercom_ms}'
        return b"%b%b%b%b}" % (head, times.encode(), stalled, parked)

    def _facts(self, *, is_extended: bool, is_guarded: bool) -> dict[str, Any]:
        session = self.session
        name = {} if session.name is None else {"name": session.name}
        facts: dict[str, Any] = {"id": self.peer_id, **name, "cwd": session.cwd, "model": session.model}
        extended, guarded = _SHOWN_EXTENDED if is_extended else (), _SHOWN_GUARDED if is_guarded else ()
        for attribute, member in (*_SHOWN, *extended, *guarded):
            value = getattr(session, attribute)
            if value is not None and value is not ABSENT:
                facts[member] = value
        if is_extended and session.host is not None:
            facts["host"] = dump_record(session.host)
        if is_guarded and self.has_guard:
            facts["guardedDelivery"] = 1
            if session.application_guard:
                facts["applicationGuard"] = session.application_guard
        # What sibling clients' validator requires, and their broker's own words (wire.md 2.1).
        facts.update(pid=session.pid or 0, startedAt=self.started_at, endpointEpoch=self.epoch, trustedLocal=True)
        return facts
