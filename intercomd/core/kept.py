"""Late replies: asks whose reply is kept until whoever asked fetches it (wire.md 9.7).

Owns kept asks from their acceptance until they are fetched or forgotten. Does not own the question while somebody
waits for it (``obligations``) nor keeping anything on disk: it asks for that and goes on when it is told.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from intercomd.core import asks as ends
from intercomd.core import refusals
from intercomd.core.dedupe import content_hash
from intercomd.core.deliveries import ANSWERED_KEPT, acknowledgement, frame_bytes
from intercomd.core.items import ASK, REPLY, Author
from intercomd.core.quotas import Excess
from libintercom.targets import name_key
from libintercom.wire.answers import FetchedReply
from libintercom.wire.frames import MAX_FRAME_BYTES, decode_json
from libintercom.wire.members import without_members

if TYPE_CHECKING:
    from intercomd.core.asks import Ask
    from intercomd.core.items import Item
    from intercomd.core.obligations import Obligations
    from intercomd.core.roster import Connection, Session
    from intercomd.core.state import State
    from libintercom.wire.answers import DeliveryFailed
    from libintercom.wire.messages import Message
    from libintercom.wire.requests import AckReply, FetchReply, Send

# The members of a message that are for the broker alone; the recipient never sees them.
PRIVATE_MEMBERS = ("keepReplyMs", "replyToken")
WAITING = "waiting"
REPLIED = "replied"
EXPIRED = "expired"
UNKNOWN = "unknown"
# Ends of a question after which no reply to it is wanted.
_VOIDING = (ends.CANCELLED, ends.REPLACED, ends.NOT_DELIVERED)
# How long it can still be told that a kept ask expired, before it is unknown.
_TELL_EXPIRED_S = 3_600.0
# What a frame of a fetched reply holds beside row and message: a request ID of at most 1 KiB, and names.
_RESERVE_BYTES = 2_048
_MS_PER_S = 1000


@dataclass(slots=True, eq=False)
class Reply:
    """The reply to a kept ask. ``is_stored`` is False until the spool has it."""

    key: str
    author: Author
    message_id: str
    content: int
    row: bytes
    message: bytes
    askers: list[int] = field(default_factory=list)
    is_stored: bool = False

    @property
    def size_bytes(self) -> int:
        return len(self.row) + len(self.message)


@dataclass(slots=True, eq=False)
class KeptAsk:
    """One question whose reply will be kept. ``asker_name`` is how its asker was called when it asked."""

    key: str
    asker: Author
    asker_name: str
    message_id: str
    recipient: Author
    token: str
    expires_at_ms: float
    reply: Reply | None = None
    is_expired: bool = False

    @property
    def question(self) -> tuple[str, str]:
        return (self.asker.peer_id, self.message_id)

    @property
    def state(self) -> str:
        if self.is_expired:
            return EXPIRED
        return REPLIED if self.reply is not None and self.reply.is_stored else WAITING

    def is_called(self, to: str) -> bool:
        """Whether a target means its asker: by its ID, or by the name it had."""
        return to == self.asker.peer_id or (self.asker_name != "" and name_key(self.asker_name) == name_key(to))

    def facts(self) -> dict[str, Any]:
        """What the spool keeps of the question."""
        return {
            "asker": self.asker.peer_id,
            "askerLineage": list(self.asker.lineage),
            "askerName": self.asker_name,
            "id": self.message_id,
            "recipient": self.recipient.peer_id,
            "recipientLineage": list(self.recipient.lineage),
            "token": self.token,
            "until": self.expires_at_ms,
        }


class Kept:
    """Every kept ask of this broker."""

    def __init__(self, state: State, obligations: Obligations) -> None:
        self._state, self._obligations = state, obligations
        self._by_question: dict[tuple[str, str], KeptAsk] = {}
        # Several askers may have used one message ID.
        self._by_id: dict[str, list[KeptAsk]] = {}
        self._by_token: dict[tuple[str, str], KeptAsk] = {}
        self._by_key: dict[str, KeptAsk] = {}
        self._by_delivery: dict[int, KeptAsk] = {}
        self._count_of: dict[str, int] = {}
        self._size_bytes = 0

    def __len__(self) -> int:
        return len(self._by_question)

    def questions(self) -> list[tuple[str, str]]:
        """Asker and message ID of every kept ask."""
        return list(self._by_question)

    def of_token(self, token: str, message_id: str) -> KeptAsk | None:
        """The kept ask that a token is for."""
        return self._by_token.get((token, message_id))

    # -- asking --------------------------------------------------------------------------------------

    def excess(self, asker_id: str) -> Excess | None:
        """Say whether one more kept ask would pass what one asker, or all, may have."""
        limits, own = self._state.limits, self._count_of.get(asker_id, 0)
        if own >= limits.kept_asks:
            return Excess("kept_asks", own, limits.kept_asks, 0)
        if len(self._by_question) >= limits.kept_asks_total:
            return Excess("kept_asks_total", len(self._by_question), limits.kept_asks_total, 0)
        return None

    def has_question(self, asker_id: str, message_id: str) -> bool:
        return (asker_id, message_id) in self._by_question

    def open(self, ask: Ask, asker: Session, recipient: Session, message: Message) -> None:
        """A question was accepted whose reply is to be kept."""
        if message.reply_token is None or message.keep_reply_ms is None:
            raise ValueError(f"{message.id} keeps nothing")
        ask.is_kept = True
        kept = KeptAsk(
            key=self._state.storing.next_key(),
            asker=Author(asker.peer_id, asker.lineage),
            asker_name=asker.registered.name or "",
            message_id=message.id,
            recipient=Author(recipient.peer_id, recipient.lineage),
            token=message.reply_token,
            expires_at_ms=self._state.turn.at_ms + message.keep_reply_ms,
        )
        self._add(kept)
        self._state.storing.store(ASK, kept.key, kept.facts())

    def ask_ended(self, ask: Ask) -> None:
        """The question was taken back, replaced, or never accepted: no reply is kept for it."""
        kept = self._by_question.get(ask.key)
        if kept is not None and kept.reply is None and ask.ended_by in _VOIDING:
            self._drop(kept)

    # -- replying ------------------------------------------------------------------------------------

    def find(self, sender: Session, frame: Send) -> KeptAsk | None:
        """The kept ask whose reply a send would be. None while its asker waits for it: then it simply gets it."""
        kept = self._match(sender, frame)
        if kept is None or kept.is_expired:
            return None
        if kept.reply is not None:
            return kept if kept.reply.message_id == frame.message.id else None
        return None if self._is_waited_for(kept) else kept

    def take(self, kept: KeptAsk, sender: Session, message: Message, message_bytes: bytes) -> DeliveryFailed | None:
        """Keep a reply, or refuse it. It is answered once stored; the same one again is answered the same."""
        content = content_hash(kept.asker.peer_id, message_bytes)
        if kept.reply is not None:
            return self._repeat(kept.reply, sender, message, content)
        row = sender.row.render(is_extended=True)
        size_bytes = frame_bytes(row, message_bytes) + _RESERVE_BYTES
        if size_bytes > MAX_FRAME_BYTES:
            return refusals.too_large(message.id, len(message_bytes), size_bytes)
        limit = self._state.limits.kept_bytes
        if self._size_bytes + size_bytes > limit:
            return refusals.over_limit(message.id, kept.asker_name, Excess("kept_bytes", self._size_bytes, limit, 0))
        storing = self._state.storing
        author = Author(sender.peer_id, sender.lineage)
        kept.reply = reply = Reply(
            storing.next_key(), author, message.id, content, row, message_bytes, askers=[sender.conn]
        )
        self._by_key[reply.key] = kept
        self._size_bytes += reply.size_bytes
        facts = {"ask": kept.key, "sender": author.peer_id, "lineage": list(author.lineage), "id": message.id}
        storing.store(REPLY, reply.key, facts, row, message_bytes)
        return None

    def answer_by_delivery(self, answered: Ask, token: int) -> None:
        """A reply is on its way to an asker that waits for it; nothing is kept once the kernel took it."""
        kept = self._by_question.get(answered.key)
        if kept is not None:
            self._by_delivery[token] = kept

    def taken(self, token: int) -> None:
        """Such a reply arrived (``deliveries.Origin``)."""
        kept = self._by_delivery.pop(token, None)
        if kept is not None and kept.reply is None and self._by_question.get(kept.question) is kept:
            self._drop(kept)

    def lost(self, token: int) -> None:
        """Such a reply did not arrive: another one may be kept."""
        self._by_delivery.pop(token, None)

    # -- fetching ------------------------------------------------------------------------------------

    def answer(self, connection: Connection, frame: FetchReply) -> int:
        """Say what became of a kept ask; returns the size of the answer in bytes."""
        kept = self.of_token(frame.reply_token, frame.message_id)
        state = UNKNOWN if kept is None else kept.state
        found: dict[str, Any] = {}
        size_bytes = _RESERVE_BYTES
        if kept is not None and kept.reply is not None and state == REPLIED:
            found = {"message": decode_json(kept.reply.message), "from_": decode_json(kept.reply.row)}
            size_bytes += kept.reply.size_bytes
        self._state.turn.write(connection.conn, FetchedReply(request_id=frame.request_id, state=state, **found))
        return size_bytes

    def acknowledge(self, frame: AckReply) -> None:
        """A fetched reply is where it belongs. Before there is one this means nothing."""
        kept = self.of_token(frame.reply_token, frame.message_id)
        if kept is not None and kept.state == REPLIED:
            self._state.counters.move("kept", "fetched")
            self._drop(kept)

    # -- what the spool says -------------------------------------------------------------------------

    def stored(self, key: str) -> None:
        """A question's record is kept, which concerns nobody, or a reply is: its sender may know."""
        kept = self._by_key.get(key)
        if kept is None or kept.reply is None or kept.reply.key != key:
            return
        reply, state = kept.reply, self._state
        reply.is_stored = True
        state.counters.accept("kept")
        for conn, session in self._take_askers(reply):
            state.turn.write(conn, acknowledgement(session, reply.message_id, ANSWERED_KEPT))
        ask = state.asks.find(*kept.question)
        if ask is not None and ask.is_kept:
            self._obligations.end(ask, ends.REPLIED)
        if kept.is_expired:
            self._bury(kept)

    def store_failed(self, key: str, cause: str) -> None:
        """A question then lives as long as this broker; a reply was not accepted, and another one may come."""
        kept = self._by_key.get(key)
        if kept is None or kept.reply is None or kept.reply.key != key:
            self._state.turn.log("error", "kept ask not stored", key=key, reason=cause)
            return
        reply = kept.reply
        self._forget_reply(kept)
        refused = refusals.not_stored(reply.message_id, kept.asker_name or kept.asker.peer_id, cause)
        for conn, session in self._take_askers(reply):
            self._state.counters.refuse("store_failed")
            self._state.turn.write(conn, refusals.for_dialect(refused, session))

    def recover(self, items: list[Item]) -> None:
        """What an earlier broker kept: questions first, then their replies."""
        for item in items:
            facts = item.read()
            if item.kind == ASK:
                self._add(_read_ask(item.key, facts))
            elif facts["ask"] in self._by_key:
                self._recover_reply(self._by_key[facts["ask"]], item)
            else:
                # Its question was forgotten first, so it was fetched.
                self._state.storing.forget(item.key)

    # -- what is due ---------------------------------------------------------------------------------

    def expire(self, asker_id: str, message_id: str) -> None:
        """A question is kept no longer; some time after that it cannot even be told that it was."""
        kept = self._by_question[asker_id, message_id]
        if kept.is_expired:
            self._drop(kept)
            return
        kept.is_expired = True
        self._state.storing.forget(kept.key)
        self._state.deadlines.set(("kept", *kept.question), self._state.turn.now + _TELL_EXPIRED_S)
        ask = self._state.asks.find(asker_id, message_id)
        if ask is not None and ask.is_kept and kept.reply is None:
            self._obligations.end(ask, ends.TIMEOUT)
        if kept.reply is not None and kept.reply.is_stored:
            self._bury(kept)

    # -- private -------------------------------------------------------------------------------------

    def _match(self, sender: Session, frame: Send) -> KeptAsk | None:
        reply_to = frame.message.reply_to or ""
        for kept in self._by_id.get(reply_to, ()):
            if kept.recipient == (sender.peer_id, sender.lineage) and kept.is_called(frame.to):
                return kept
        return None

    def _is_waited_for(self, kept: KeptAsk) -> bool:
        ask, asker = self._state.asks.find(*kept.question), self._state.roster.sessions.get(kept.asker.peer_id)
        is_same = asker is not None and asker.lineage == kept.asker.lineage
        return is_same and ask is not None and ask.is_waiting

    def _repeat(self, reply: Reply, sender: Session, message: Message, content: int) -> DeliveryFailed | None:
        if content != reply.content:
            reason = "Reply to a kept ask: its id was used for another message; send it under a new id"
            return refusals.refusal(message.id, "message_id_reuse", reason)
        if reply.is_stored:
            self._state.turn.write(sender.conn, acknowledgement(sender, message.id, ANSWERED_KEPT))
        else:
            reply.askers.append(sender.conn)
        return None

    def _add(self, kept: KeptAsk) -> None:
        self._by_question[kept.question] = self._by_key[kept.key] = kept
        self._by_id.setdefault(kept.message_id, []).append(kept)
        self._by_token[kept.token, kept.message_id] = kept
        self._count_of[kept.asker.peer_id] = self._count_of.get(kept.asker.peer_id, 0) + 1
        left_s = max(0.0, (kept.expires_at_ms - self._state.turn.at_ms) / _MS_PER_S)
        self._state.deadlines.set(("kept", *kept.question), self._state.turn.now + left_s)

    def _recover_reply(self, kept: KeptAsk, item: Item) -> None:
        facts = item.read()
        root, parent = facts["lineage"]
        author = Author(facts["sender"], (root, parent))
        content = content_hash(kept.asker.peer_id, item.message)
        kept.reply = Reply(item.key, author, facts["id"], content, item.row, item.message, is_stored=True)
        self._by_key[item.key] = kept
        self._size_bytes += kept.reply.size_bytes
        self._state.counters.accept("kept")

    def _bury(self, kept: KeptAsk) -> None:
        """A reply that nobody fetched in time."""
        reply = kept.reply
        if reply is not None:
            self._state.counters.move("kept", "dead_expired")
            self._state.letters.bury(reply.author, kept.asker.peer_id, reply.message_id, "expired")
            self._forget_reply(kept)

    def _forget_reply(self, kept: KeptAsk) -> None:
        if kept.reply is not None:
            self._size_bytes -= kept.reply.size_bytes
            del self._by_key[kept.reply.key]
            self._state.storing.forget(kept.reply.key)
            kept.reply = None

    def _drop(self, kept: KeptAsk) -> None:
        """Nothing of it is known any more."""
        self._forget_reply(kept)
        del self._by_question[kept.question], self._by_key[kept.key]
        self._by_id[kept.message_id].remove(kept)
        if not self._by_id[kept.message_id]:
            del self._by_id[kept.message_id]
        if self._by_token.get((kept.token, kept.message_id)) is kept:
            del self._by_token[kept.token, kept.message_id]
        self._count_of[kept.asker.peer_id] -= 1
        if not self._count_of[kept.asker.peer_id]:
            del self._count_of[kept.asker.peer_id]
        self._state.deadlines.clear(("kept", *kept.question))
        self._state.storing.forget(kept.key)

    def _take_askers(self, reply: Reply) -> list[tuple[int, Session]]:
        """Who is to be answered: the reply's author, where it is still registered."""
        found = ((conn, self._state.roster.session_of(conn)) for conn in reply.askers)
        reply.askers = []
        return [(conn, session) for conn, session in found if session and session.peer_id == reply.author.peer_id]


def strip(message_bytes: bytes) -> bytes | None:
    """A message without what is for the broker alone; None when it is nested too deeply to be followed."""
    return without_members(message_bytes, PRIVATE_MEMBERS)


def _read_ask(key: str, facts: dict[str, Any]) -> KeptAsk:
    asker_root, asker_parent = facts["askerLineage"]
    root, parent = facts["recipientLineage"]
    return KeptAsk(
        key=key,
        asker=Author(facts["asker"], (asker_root, asker_parent)),
        asker_name=facts["askerName"],
        message_id=facts["id"],
        recipient=Author(facts["recipient"], (root, parent)),
        token=facts["token"],
        expires_at_ms=facts["until"],
    )
