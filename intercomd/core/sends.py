"""The way of a send: judged, accepted, delivered or staged; or refused with a reason (wire.md 14.1-14.6).

Owns the order of the checks. Each check either lets the message pass or names the refusal; nothing is
changed before all have passed, except the sender's own rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from intercomd.core import guards, refusals
from intercomd.core.asks import REPLIED, ask_of
from intercomd.core.dedupe import Remembered, content_hash, message_key
from intercomd.core.deliveries import Delivery
from intercomd.core.kept import strip
from intercomd.core.quotas import Excess
from intercomd.core.roster import may_see
from intercomd.core.staging import is_stageable, stage_key
from libintercom.targets import FOUND, resolve
from libintercom.wire.answers import DeliveryFailed
from libintercom.wire.codec import INCOMING_OVERHEAD_BYTES
from libintercom.wire.frames import MAX_FRAME_BYTES
from libintercom.wire.messages import SIBLING

if TYPE_CHECKING:
    from intercomd.core.asks import Ask
    from intercomd.core.dedupe import MessageKey
    from intercomd.core.deliveries import Deliveries
    from intercomd.core.kept import Kept
    from intercomd.core.obligations import Obligations
    from intercomd.core.parking import Parking
    from intercomd.core.receipts import Receipts
    from intercomd.core.roster import Connection, Session
    from intercomd.core.staging import Staging
    from intercomd.core.state import State
    from libintercom.targets import Index
    from libintercom.wire.messages import Message
    from libintercom.wire.requests import Send


# Target texts that a session's resolutions are kept for, and the longest one: enough for any conversation, and bounded.
_MAX_AIMS = 64
_MAX_AIM_CHARS = 128


@dataclass(slots=True)
class Attempt:
    """One send while it is judged."""

    sender: Session
    recipient: Session
    to: str
    message: Message
    message_bytes: bytes
    key: MessageKey
    content: int
    # The sender's row as it is at this send, for this recipient, and the size of the frame with it.
    sender_row: bytes
    size_bytes: int
    ask: Ask | None = None
    answered: Ask | None = None


class Sends:
    """Judges and accepts sends on the shared state."""

    def __init__(
        self,
        state: State,
        obligations: Obligations,
        deliveries: Deliveries,
        staging: Staging,
        receipts: Receipts,
        parking: Parking,
        kept: Kept,
    ) -> None:
        self._state, self._obligations, self._receipts = state, obligations, receipts
        self._deliveries, self._staging = deliveries, staging
        self._parking, self._kept = parking, kept

    def refuse_invalid(self, connection: Connection, message_id: str, size_bytes: int) -> None:
        """A send whose message breaks a rule: refused under its id, charged like any other."""
        excess = self._state.quotas.charge_send(connection.conn, self._state.turn.now, size_bytes)
        if excess is not None:
            self._refuse(connection, refusals.over_limit(message_id, "unknown", excess))
        else:
            self._refuse(connection, refusals.refusal(message_id, "invalid_message", refusals.INVALID_FORMAT))

    def send(self, connection: Connection, frame: Send, message_bytes: bytes, size_bytes: int) -> None:
        """Accept a message or refuse it, with exactly one answer to come. ``size_bytes``: of its whole frame."""
        outcome = self._judge(connection, frame, message_bytes, size_bytes)
        if isinstance(outcome, Attempt):
            self._accept(outcome)
        elif outcome is not None:
            self._refuse(connection, outcome)

    def _judge(
        self, connection: Connection, frame: Send, message_bytes: bytes, size_bytes: int
    ) -> Attempt | DeliveryFailed | None:
        """The attempt that passed, a refusal, or None when the same message was answered before."""
        sender, message = connection.session, frame.message
        if sender is None:
            return refusals.refusal(message.id, "not_registered", refusals.SENDER_NOT_FOUND)
        excess = self._state.quotas.charge_send(connection.conn, self._state.turn.now, size_bytes)
        if excess is not None:
            return refusals.over_limit(message.id, frame.to, excess)
        if message.reply_to is not None:
            kept = self._kept.find(sender, frame)
            if kept is not None:
                return self._kept.take(kept, sender, message, message_bytes)
        if message.reply_token is not None and sender.has_ext:
            stripped = strip(message_bytes)
            if stripped is None:
                return refusals.refusal(message.id, "invalid_message", refusals.INVALID_FORMAT)
            message_bytes = stripped
        recipient = self._find_recipient(connection, sender, frame)
        if isinstance(recipient, DeliveryFailed):
            return recipient
        key, content = message_key(sender.peer_id, message.id), content_hash(recipient.peer_id, message_bytes)
        row = sender.row.render(is_extended=recipient.has_ext, is_guarded=recipient.has_guard)
        frame_size = INCOMING_OVERHEAD_BYTES + len(row) + len(message_bytes)
        attempt = Attempt(sender, recipient, frame.to, message, message_bytes, key, content, row, frame_size)
        known = self._state.dedupe.find(key, self._state.turn.now)
        if known is not None and self._is_current(attempt, known):
            return self._repeat(attempt, known)
        return self._find_fault(attempt) or attempt

    def _find_recipient(self, connection: Connection, sender: Session, frame: Send) -> Session | DeliveryFailed:
        if frame.message.guard is not None or frame.message.reply_hint is not None:
            return guards.aim(self._state.roster, sender, frame)
        return self._aim(sender, frame.to) or self._refuse_target(connection, sender, frame)

    def _aim(self, sender: Session, to: str) -> Session | None:
        """Whom a target means; None when it selects nobody, or more than one."""
        roster, aims = self._state.roster, sender.aims
        if sender.aims_version != roster.version:
            aims.clear()
            sender.aims_version = roster.version
        recipient = aims.get(to)
        if recipient is None:
            found = resolve(to, self._indexes_of(sender), sender.peer_id)
            if found.kind != FOUND:
                return None
            recipient = roster.find(found.ids[0])
            if recipient is not None and len(aims) < _MAX_AIMS and len(to) <= _MAX_AIM_CHARS:
                aims[to] = recipient
        return recipient

    def _refuse_target(self, connection: Connection, sender: Session, frame: Send) -> DeliveryFailed:
        found = resolve(frame.to, self._indexes_of(sender), sender.peer_id)
        may_search = sender.has_ext and self._may_search(connection)
        roster = self._state.roster
        return refusals.unresolved(frame.message.id, frame.to, found, roster, sender, may_search=may_search)

    def _indexes_of(self, sender: Session) -> list[Index]:
        return [circle.index for circle in self._state.roster.circles_for(sender.registered)]

    def _may_search(self, connection: Connection) -> bool:
        now = self._state.turn.now
        bucket = self._state.quotas.allowance(connection.conn, now).nearest
        if bucket.level(now) < 1:
            return False
        bucket.take(1, now)
        return True

    def _is_current(self, attempt: Attempt, known: Remembered) -> bool:
        """Whether the recipient that a message went to is still there, or the message still waits for it."""
        if known.spooled is not None:
            if known.spooled.is_over:
                self._state.dedupe.forget(attempt.key)
            return not known.spooled.is_over
        connection = self._state.roster.connections.get(known.recipient_conn)
        # Forgotten when its recipient left: the message may be needed again by whoever came instead.
        if connection is None or connection.session is None or connection.session.row.epoch != known.recipient_epoch:
            self._state.dedupe.forget(attempt.key)
            return False
        return True

    def _repeat(self, attempt: Attempt, known: Remembered) -> DeliveryFailed | None:
        if known.content != attempt.content:
            reason = (
                f'Message to "{refusals.clip(attempt.to)}": its id was used for another message; send it under a new id'
            )
            return refusals.refusal(attempt.message.id, "message_id_reuse", reason)
        if known.answer:
            self._deliveries.answer_again(attempt.sender, attempt.message.id, known.answer)
        elif known.spooled is not None:
            known.spooled.askers.append(attempt.sender.conn)
        else:
            self._deliveries.repeat(known.token, attempt.sender.conn)
        return None

    def _find_fault(self, attempt: Attempt) -> DeliveryFailed | None:
        """The first thing that forbids a new message, or None."""
        message, recipient, limits = attempt.message, attempt.recipient, self._state.limits
        if message.guard is not None:
            # Behind the memory of what was accepted: a message that may have arrived is never said not to have.
            misfit = guards.find_fault(self._state.roster, recipient, attempt.to, message)
            if misfit is not None:
                return misfit
        if recipient.row.is_stalled:
            return refusals.stalled(message.id, attempt.to, limits.stalled_after_s)
        if attempt.size_bytes > MAX_FRAME_BYTES:
            return refusals.too_large(message.id, len(attempt.message_bytes), attempt.size_bytes)
        if message.reply_to is not None:
            attempt.answered = self._obligations.answered_by(
                attempt.sender.peer_id, recipient.peer_id, message.reply_to
            )
        excess = self._excess(attempt)
        if excess is not None:
            code = "parked_full" if excess.rule.startswith("parked") else "recipient_full"
            return refusals.over_limit(message.id, attempt.to, excess, code)
        if message.is_replace and self._is_stageable(attempt) and not self._staging.has_room_for(attempt):
            return refusals.refusal(message.id, "stage_full", refusals.STAGE_FULL)
        return self._find_ask_fault(attempt) if message.expects_reply is True else None

    def _excess(self, attempt: Attempt) -> Excess | None:
        quotas, sender, recipient = self._state.quotas, attempt.sender, attempt.recipient
        # The first reply to a live ask is never refused by the pair's budget (wire.md 14.6).
        if attempt.answered is None:
            excess = quotas.pair_excess(sender.peer_id, recipient.peer_id, self._state.turn.now)
            if excess is not None:
                return excess
        if recipient.is_spooled:
            room_bytes = len(attempt.sender_row) + len(attempt.message_bytes)
            return self._parking.inputs.excess(self._parking.child_of(recipient), room_bytes)
        return quotas.recipient_excess(self._state.roster.connections[recipient.conn], attempt.size_bytes)

    def _find_ask_fault(self, attempt: Attempt) -> DeliveryFailed | None:
        state, asker_id, recipient_id = self._state, attempt.sender.peer_id, attempt.recipient.peer_id
        message, limits = attempt.message, state.limits
        if state.asks.find(asker_id, message.id) is not None:
            reason = f'Ask to "{refusals.clip(attempt.to)}": a question with its id is still open; ask under a new id'
            return refusals.refusal(message.id, "message_id_reuse", reason)
        asked = state.asks.count_of_asker(asker_id) if attempt.sender.has_ext else 0
        for rule, count, limit in (
            ("asker_asks", asked, limits.max_asks_per_asker),
            ("recipient_asks", state.asks.count_of_recipient(recipient_id), limits.max_asks_per_recipient),
        ):
            if count >= limit:
                return refusals.over_limit(message.id, attempt.to, Excess(rule, count, limit, 0))
        accepts_asks = attempt.recipient.registered.accepts_asks
        has_ext = attempt.sender.has_ext
        ask = ask_of(asker_id, recipient_id, message, accepts_asks=accepts_asks, has_ext=has_ext)
        # The answered ask does not count: this very message ends it.
        circle = state.asks.cycle(asker_id, recipient_id, attempt.answered) if ask.is_waiting else []
        if circle:
            return self._refuse_cycle(attempt, circle)
        attempt.ask = ask
        return self._find_kept_fault(attempt) if self._keeps_reply(attempt) else None

    def _find_kept_fault(self, attempt: Attempt) -> DeliveryFailed | None:
        asker_id, message = attempt.sender.peer_id, attempt.message
        if self._kept.has_question(asker_id, message.id):
            reason = f'Ask to "{refusals.clip(attempt.to)}": a reply is kept for its id; ask under a new id'
            return refusals.refusal(message.id, "message_id_reuse", reason)
        excess = self._kept.excess(asker_id)
        return None if excess is None else refusals.over_limit(message.id, attempt.to, excess)

    @staticmethod
    def _keeps_reply(attempt: Attempt) -> bool:
        """Whether the asker wants a late reply kept for it (wire.md 9.7)."""
        message = attempt.message
        return attempt.sender.has_ext and message.reply_token is not None and message.keep_reply_ms is not None

    def _refuse_cycle(self, attempt: Attempt, circle: list[str]) -> DeliveryFailed:
        visible = {session.peer_id: session for session in map(self._state.roster.find, circle) if session}
        shown = [
            session.registered.name or session.peer_id
            for session in visible.values()
            if may_see(attempt.sender.registered, session.registered)
        ]
        return refusals.cycle(attempt.message.id, attempt.to, shown)

    def _accept(self, attempt: Attempt) -> None:
        state, sender, recipient, message = self._state, attempt.sender, attempt.recipient, attempt.message
        token = self._deliveries.next_token()
        known = Remembered(attempt.content, recipient.conn, recipient.row.epoch, token)
        state.dedupe.remember(attempt.key, known, state.turn.now)
        state.quotas.charge_pair(sender.peer_id, recipient.peer_id, state.turn.now)
        if attempt.answered is not None:
            self._obligations.end(attempt.answered, REPLIED)
        if message.is_replace:
            self._obligations.replace_thread(*stage_key(sender.peer_id, recipient.peer_id, message))
        if attempt.ask is not None:
            self._obligations.open(attempt.ask, sender)
            if self._keeps_reply(attempt):
                self._kept.open(attempt.ask, sender, recipient, message)
        self._acquaint(sender, recipient)
        if sender.dialect == SIBLING:
            self._receipts.remember(sender, recipient, message.id)
        if recipient.is_spooled:
            self._spool(attempt, known)
            return
        if message.is_replace and not self._goes_out(attempt, known):
            return
        self._deliver(attempt, token, known)

    def _goes_out(self, attempt: Attempt, known: Remembered) -> bool:
        """Stage a replaceable message, or see to it that an older one of its thread does not arrive after it."""
        if self._is_stageable(attempt):
            self._staging.stage(attempt, known)
            return False
        self._staging.supersede(attempt.sender.peer_id, attempt.recipient.peer_id, attempt.message)
        return True

    @staticmethod
    def _is_stageable(attempt: Attempt) -> bool:
        """What goes through the spool is not staged: it waits long enough there."""
        return not attempt.recipient.is_spooled and is_stageable(attempt.message, attempt.recipient)

    def _acquaint(self, sender: Session, recipient: Session) -> None:
        at_ms = self._state.turn.at_ms
        sender.row.exchanged(at_ms)
        recipient.row.exchanged(at_ms)
        sender.partners.add(recipient.peer_id)
        recipient.partners.add(sender.peer_id)

    def _spool(self, attempt: Attempt, known: Remembered) -> None:
        """It waits in the spool: its recipient is parked, or older input is still on its way to it."""
        child = self._parking.child_of(attempt.recipient)
        parts = (attempt.sender_row, attempt.message_bytes)
        self._parking.inputs.admit(attempt.sender, child, attempt.message, parts, known).ask = attempt.ask

    def _deliver(self, attempt: Attempt, token: int, known: Remembered) -> None:
        if attempt.ask is not None:
            attempt.ask.is_delivered = True
        if attempt.answered is not None and attempt.answered.is_kept:
            self._kept.answer_by_delivery(attempt.answered, token)
        delivery = Delivery(
            token=token,
            sender=attempt.sender,
            message_id=attempt.message.id,
            recipient=self._state.roster.connections[attempt.recipient.conn],
            recipient_id=attempt.recipient.peer_id,
            size_bytes=attempt.size_bytes,
            known=known,
            key=attempt.key,
            ask=attempt.ask,
            gauge="",
            askers=[attempt.sender.conn],
            origin=self._kept if attempt.answered is not None and attempt.answered.is_kept else None,
        )
        self._deliveries.start(delivery, attempt.sender_row, attempt.message_bytes)

    def _refuse(self, connection: Connection, frame: DeliveryFailed) -> None:
        self._state.counters.refuse(frame.code or "")
        self._state.turn.write(connection.conn, refusals.for_dialect(frame, connection.session))
