"""What a session's journal remembers: entries, appended once and never changed, and what they add up to. Pure.

Owns the kinds of entries, the order in which they may follow one another, and ``fold``: one message's entries
become its ``Standing``. Does not own storing them (the journal) nor deciding which to write (``inbox``).

Driven so: the inbox makes entries and asks for them to be stored; the journal stores them in order and answers
``find(message_id)`` with ``fold(entries of that message, order=…)``; recovery gets the standings that
``is_unfinished`` in admission order.
"""

from __future__ import annotations

from libintercom.wire.record import Record, optional, required
from libintercom.wire.values import ANYTHING, BOOL, COUNT, STRING, one_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# What became of the message itself, in the order of a life without accidents.
ADMITTED = "admitted"
QUEUED = "queued"
HANDED = "handed"
PLACED = "placed"
CONSUMED = "consumed"
# Its other ends, and the doubt that only a person ends.
DISCARDED = "discarded"
REPLACED = "replaced"
UNCERTAIN = "uncertain"
# A reply that a waiting ask of ours took: it was never input of its own.
REPLY_RECEIVED = "reply_received"
# Facts about an ask, whatever became of its text. ``answering``: our reply is about to leave; ``unanswered``:
# that reply certainly did not, so the question is open again.
REPLIED = "replied"
EXPIRED = "expired"
RETIRED = "retired"
ANSWERING = "answering"
UNANSWERED = "unanswered"

# Which kind may follow which; "" is a message that the journal does not know. Anything else is a repetition (or a
# damaged journal) and changes nothing. ``queued`` after ``handed``: the host certainly does not hold it. A host that
# was seen to hold a message holds it, whatever was thought of it before.
FOLLOWERS = {
    "": (ADMITTED, REPLY_RECEIVED),
    ADMITTED: (QUEUED, HANDED, PLACED, DISCARDED, REPLACED),
    QUEUED: (HANDED, PLACED, DISCARDED, REPLACED),
    # A person's decision counts although the doubt before it could not be stored.
    HANDED: (PLACED, QUEUED, UNCERTAIN, DISCARDED),
    UNCERTAIN: (PLACED, QUEUED, DISCARDED),
    PLACED: (CONSUMED,),
    CONSUMED: (),
    DISCARDED: (),
    REPLACED: (),
    REPLY_RECEIVED: (),
}
# No entry about an ask follows one of these.
CLOSING_FACTS = (REPLIED, EXPIRED, RETIRED)
FACTS = (*CLOSING_FACTS, ANSWERING, UNANSWERED)
KINDS = tuple(kind for kind in FOLLOWERS if kind) + FACTS
# The text of a message in one of these has reached its end; its question may still be open.
FINAL = (PLACED, CONSUMED, DISCARDED, REPLACED, REPLY_RECEIVED)
# Ended without having been input: nobody can be expected to answer what nobody read.
_UNREAD_ENDS = (DISCARDED, REPLACED, REPLY_RECEIVED)


class Entry(Record):
    """One checkpoint. ``entry_id``: a uuid4; ``message_id``: ``""`` when it is about the session; ``at_ms``: Unix ms.

    ``body`` of ``admitted``: ``{"from": row, "message": message, "receivedAt": ms, "textSha256": hex,
    "session": native id, "generation": incarnation}``, row and message exactly as received; of ``reply_received``: the
    same and ``"by"``, the ask's ID; of ``placed``: ``{"placement": host entry id or ""}``; of ``replaced``,
    ``replied``, ``answering`` and ``unanswered``: ``{"by": message id}``; of ``discarded``, ``uncertain``, ``expired``
    and ``retired``: ``{"reason": …}``; else ``{}``. It is JSON and may hold lone surrogates: dump it with
    ``ensure_ascii=True``.
    """

    entry_id: str = required(STRING)
    message_id: str = required(STRING)
    kind: str = required(one_of(*KINDS))
    at_ms: int = required(COUNT)
    body: dict[str, Any] = required(ANYTHING)


class Standing(Record):
    """What all entries of one message add up to.

    ``kind``: the last valid kind of the message itself; ``fact``: of its ask (``""``: none); ``admitted``: its first
    entry; ``placement``: the host's entry, ``None`` when none was observed; ``replaced_by``: a message ID, else ``""``;
    ``answers``: IDs of replies of ours that left or may have left; ``was_queued``, ``was_handed``, ``was_discarded``:
    observed at any time; ``order``: where its admission stands among all of its journal, ascending.
    """

    message_id: str = required(STRING)
    kind: str = required(STRING)
    order: int = required(COUNT)
    admitted: Entry | None = optional(ANYTHING, default=None)
    fact: str = required(STRING)
    answers: tuple[str, ...] = required(ANYTHING)
    placement: str | None = optional(STRING, default=None)
    replaced_by: str = required(STRING)
    was_queued: bool = required(BOOL)
    was_handed: bool = required(BOOL)
    was_discarded: bool = required(BOOL)

    @property
    def is_ask(self) -> bool:
        return self.admitted is not None and self.admitted.body["message"].get("expectsReply") is True

    @property
    def is_open_ask(self) -> bool:
        """A question that somebody may still answer; ``answering`` counts: whether that reply left is unknown."""
        return self.is_ask and self.fact not in CLOSING_FACTS and self.kind not in _UNREAD_ENDS

    @property
    def is_unfinished(self) -> bool:
        """What a new start must take up: a text that was not placed, or a question that was not closed."""
        return bool(self.kind) and (self.kind not in FINAL or self.is_open_ask)


def fold(entries: Iterable[Entry], *, order: int = 0) -> Standing | None:
    """What the entries of one message, oldest first, add up to; ``None`` when there are none."""
    sums: dict[str, Any] = {}
    for entry in entries:
        if not sums:
            sums = _blank(entry.message_id, order)
        _add(sums, entry)
    return Standing(**sums) if sums else None


def extend(standing: Standing | None, entry: Entry, *, order: int = 0) -> Standing:
    """The standing after one more entry: ``fold`` step by step. ``order`` counts until the message is admitted."""
    sums = _blank(entry.message_id, order) if standing is None else {**standing.present()}
    if not sums["kind"]:
        sums["order"] = order
    _add(sums, entry)
    return Standing(**sums)


def _blank(message_id: str, order: int) -> dict[str, Any]:
    texts = dict.fromkeys(("kind", "fact", "replaced_by"), "")
    observed = dict.fromkeys(("was_queued", "was_handed", "was_discarded"), False)
    return {"message_id": message_id, "order": order, "answers": (), **texts, **observed}


def _add(sums: dict[str, Any], entry: Entry) -> None:
    _observe(sums, entry)
    if entry.kind in FACTS:
        _add_fact(sums, entry)
    elif entry.kind in FOLLOWERS[sums["kind"]]:
        sums["kind"] = entry.kind
        if entry.kind in (ADMITTED, REPLY_RECEIVED):
            sums["admitted"] = entry
        elif entry.kind == REPLACED:
            sums["replaced_by"] = entry.body.get("by", "")


def _add_fact(sums: dict[str, Any], entry: Entry) -> None:
    if sums["fact"] in CLOSING_FACTS:
        return
    by = entry.body.get("by", "")
    others = tuple(answer for answer in sums["answers"] if answer != by)
    if entry.kind in CLOSING_FACTS:
        sums["fact"] = entry.kind
        sums["answers"] = (*others, by) if entry.kind == REPLIED else sums["answers"]
    else:
        sums["answers"] = (*others, by) if entry.kind == ANSWERING else others
        sums["fact"] = ANSWERING if sums["answers"] else ""


def _observe(sums: dict[str, Any], entry: Entry) -> None:
    """What a receipt tells: each was seen once, whatever came after (seeds, "Native-owned receipts")."""
    if entry.kind in (QUEUED, HANDED, DISCARDED):
        sums[f"was_{entry.kind}"] = True
    elif entry.kind == PLACED and not sums.get("placement"):
        sums["placement"] = entry.body.get("placement") or None
