"""Questions that others asked this session and that wait for its reply. Pure.

Owns which of them are open, the bound on their number, and which one a reply means. Does not own sending the
reply (``flows.reply``) nor what a host showed of them.
"""

from __future__ import annotations

from collections import OrderedDict

from libintercom.errors import NoPendingAsk
from libintercom.targets import MIN_PREFIX_CHARS, name_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from libintercom.inbound import Inbound

# wire.md section 6: the oldest of more is evicted, with a notice.
MAX_PENDING = 100
# Answered, retired and evicted IDs are remembered, so that a repeated message never revives its question.
MAX_SETTLED = 10 * MAX_PENDING
# Questions named in one error line, so that it stays readable.
MAX_NAMED = 5


class PendingAsk:
    """One question that waits for our reply. ``at_ms``: when it came, Unix milliseconds of our clock.

    ``reply_id``: a reply of ours to it that left or may have left, ``""`` for none; ``is_leaving``: it is on its way.
    """

    __slots__ = ("at_ms", "inbound", "is_leaving", "reply_id")

    def __init__(self, inbound: Inbound, at_ms: int) -> None:
        self.inbound, self.at_ms = inbound, at_ms
        self.reply_id = ""
        self.is_leaving = False

    @property
    def message_id(self) -> str:
        return self.inbound.message.id

    @property
    def sender_id(self) -> str:
        return self.inbound.row.id

    def is_from(self, to: str) -> bool:
        """Whether ``to`` means its sender: by ID, by name, or by an ID prefix of at least 8 characters."""
        key = name_key(to)
        peer_id = self.sender_id.lower()
        if key in (peer_id, name_key(self.inbound.row.name or "")):
            return bool(key)
        return len(key) >= MIN_PREFIX_CHARS and peer_id.startswith(key)


class PendingAsks:
    """The open questions in order of arrival."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, PendingAsk] = OrderedDict()
        self._settled: OrderedDict[str, None] = OrderedDict()
        self._active = ""

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[PendingAsk]:
        return iter(list(self._open.values()))

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._open

    def admit(self, inbound: Inbound, at_ms: int) -> PendingAsk | None:
        """Take a question in and return the one evicted for it, if any. A known ID changes nothing."""
        message = inbound.message
        if not message.is_ask or message.id in self._open or message.id in self._settled:
            return None
        self._open[message.id] = PendingAsk(inbound, at_ms)
        if len(self._open) <= MAX_PENDING:
            return None
        oldest = next(iter(self._open.values()))
        self.settle(oldest.message_id)
        return oldest

    def settle(self, message_id: str) -> bool:
        """Close a question (answered or retired); False when it was not open."""
        if self._open.pop(message_id, None) is None:
            return False
        self._settled[message_id] = None
        if len(self._settled) > MAX_SETTLED:
            self._settled.popitem(last=False)
        if self._active == message_id:
            self._active = ""
        return True

    def forget_sender(self, session_id: str) -> list[str]:
        """Close every question of a session that left; the IDs of those that were open."""
        gone = [ask.message_id for ask in self if ask.sender_id == session_id]
        for message_id in gone:
            self.settle(message_id)
        return gone

    def activate(self, message_id: str) -> None:
        """Make an open question the one that a bare ``reply`` means; any other ID makes none active."""
        self._active = message_id if message_id in self._open else ""

    def find(self, message_id: str) -> PendingAsk | None:
        """The open question with this ID."""
        return self._open.get(message_id)

    def resolve(self, reply_to: str = "", to: str = "") -> PendingAsk:
        """The question a reply means: by its ID, by its sender, else the active one, else the only one.

        One that has a reply which may have left is meant only by its ID, and while that reply is on its way by nothing.

        Raises:
            NoPendingAsk: none matches, or several do; the reason says which and what to give.
        """
        if reply_to:
            return self._named(reply_to, to)
        unanswered = [ask for ask in self if not ask.reply_id]
        if to:
            return _only([ask for ask in unanswered if ask.is_from(to)], f"from {to!r}")
        if self._active and not self._open[self._active].reply_id:
            return self._open[self._active]
        return _only(unanswered, "")

    def _named(self, reply_to: str, to: str) -> PendingAsk:
        ask = self._open.get(reply_to)
        if ask is None:
            raise NoPendingAsk(f"no ask {reply_to} is pending here: it was answered, retired or never came")
        if to and not ask.is_from(to):
            raise NoPendingAsk(f"ask {reply_to} is from {ask.inbound.sender}, not from {to!r}")
        if ask.is_leaving:
            raise NoPendingAsk(f"a reply to ask {reply_to} is on its way: message {ask.reply_id}")
        return ask


def _only(asks: list[PendingAsk], whose: str) -> PendingAsk:
    which = f" {whose}" if whose else ""
    if not asks:
        raise NoPendingAsk(f"no ask{which} is pending here")
    if len(asks) > 1:
        known = ", ".join(f"{ask.message_id} (from {ask.inbound.sender})" for ask in asks[:MAX_NAMED])
        raise NoPendingAsk(f"{len(asks)} asks{which} are pending; name one by its message ID: {known}")
    return asks[0]
