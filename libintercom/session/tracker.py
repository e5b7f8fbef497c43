"""The reply tracker: which questions wait for this session's reply, and which one a reply means. Pure.

Owns the implicit target of a turn and the standing of each answer, over ``libintercom.pending``. Does not own the
facts it is fed with (``answers``) nor sending.

Driven so: the inbox feeds it; a session's owner reads ``views`` and asks ``resolve`` for the question of a reply, then
tells the inbox ``ReplyBegan``.
"""

from __future__ import annotations

from libintercom.pending import PendingAsks
from libintercom.wire.record import Record, required
from libintercom.wire.values import BOOL, COUNT, STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.inbound import Inbound
    from libintercom.pending import PendingAsk


class AskView(Record):
    """One waiting question for whoever lists them.

    ``is_shown``: the host was seen to have it; ``is_target``: a bare reply means it; ``reply_id``: a reply that left or
    may have left, ``""`` for none.
    """

    message_id: str = required(STRING)
    sender_id: str = required(STRING)
    sender: str = required(STRING)
    text: str = required(STRING)
    received_at_ms: int = required(COUNT)
    is_shown: bool = required(BOOL)
    is_target: bool = required(BOOL)
    reply_id: str = required(STRING)


class Tracker:
    """Open questions in admission order, at most ``pending.MAX_PENDING``."""

    def __init__(self) -> None:
        self.asks = PendingAsks()
        self._shown: set[str] = set()
        self._is_in_turn = False
        # What a bare reply means in this turn; once answered there is none until the next turn.
        self._target = ""
        # Earlier replies to the same question that may have left, by its ID.
        self._doubted: dict[str, list[str]] = {}

    def __len__(self) -> int:
        return len(self.asks)

    def __contains__(self, message_id: object) -> bool:
        return message_id in self.asks

    def open(self, inbound: Inbound, at_ms: int) -> str:
        """Take a question in; the ID of the one evicted for it, else ``""``."""
        evicted = self.asks.admit(inbound, at_ms)
        if evicted is None:
            return ""
        self._forget(evicted.message_id)
        return evicted.message_id

    def close(self, message_id: str) -> bool:
        """A question is over, for ever; False when it was not open."""
        self._forget(message_id)
        return self.asks.settle(message_id)

    def _forget(self, message_id: str) -> None:
        self._shown.discard(message_id)
        self._doubted.pop(message_id, None)

    def show(self, message_id: str) -> None:
        """The host has its text, so a reply can mean it."""
        if message_id in self.asks:
            self._shown.add(message_id)
            self._aim()

    def start_turn(self) -> None:
        self._is_in_turn, self._target = True, ""
        self._aim()

    def end_turn(self) -> None:
        self._is_in_turn, self._target = False, ""
        self.asks.activate("")

    def _aim(self) -> None:
        """The first unresolved question that was shown, whichever message triggered the turn."""
        if self._is_in_turn and not self._target:
            shown = [ask for ask in self.asks if ask.message_id in self._shown and not ask.reply_id]
            self._target = shown[0].message_id if shown else ""
            self.asks.activate(self._target)

    def resolve(self, reply_to: str = "", to: str = "") -> PendingAsk:
        """The question that a reply means.

        Raises:
            NoPendingAsk: none, or several; the reason says which and what to give.
        """
        return self.asks.resolve(reply_to, to)

    def begin_reply(self, message_id: str, reply_id: str) -> bool:
        """A reply leaves; False when the question is not open or has one on its way."""
        ask = self.asks.find(message_id)
        if ask is None or ask.is_leaving:
            return False
        if ask.reply_id:
            self._doubted.setdefault(message_id, []).append(ask.reply_id)
        ask.reply_id, ask.is_leaving = reply_id, True
        return True

    def doubt_reply(self, message_id: str, reply_id: str) -> None:
        """Whether that reply left is unknown: only who names the question may answer it again."""
        ask = self.asks.find(message_id)
        if ask is not None and ask.reply_id != reply_id:
            self.begin_reply(message_id, reply_id)
        if ask is not None and ask.reply_id == reply_id:
            ask.is_leaving = False

    def take_back_reply(self, message_id: str, reply_id: str) -> None:
        """That reply certainly did not leave; an earlier one to the same question may still have."""
        ask, doubted = self.asks.find(message_id), self._doubted.get(message_id, [])
        if ask is not None and ask.reply_id == reply_id:
            ask.reply_id, ask.is_leaving = doubted.pop() if doubted else "", False
        elif reply_id in doubted:
            doubted.remove(reply_id)

    def views(self) -> list[AskView]:
        """What waits, oldest first."""
        return [self._view(ask) for ask in self.asks]

    def _view(self, ask: PendingAsk) -> AskView:
        return AskView(
            message_id=ask.message_id,
            sender_id=ask.sender_id,
            sender=ask.inbound.sender,
            text=ask.inbound.message.content.text,
            received_at_ms=ask.at_ms,
            is_shown=ask.message_id in self._shown,
            is_target=bool(self._target) and ask.message_id == self._target and not ask.reply_id,
            reply_id=ask.reply_id,
        )
