"""What must be true of a session that was killed again and again, judged from outside. Pure.

Owns the rules of sessions.md section 1 as questions to the evidence: the senders' ledger, the journal as it was read
after each life, the host's own file, and what each life said. Does not own gathering it (``story``).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from libintercom.session import entries
from libintercom.session.entries import Entry, fold
from libintercom.wire.record import parse_record
from tests.trials.crash.native import CANNOT_TELL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from libintercom.session.entries import Standing
    from tests.trials.crash.story import Evidence, Lived

_TEXT_ENDS = (entries.PLACED, entries.CONSUMED)


class Record:
    """One story's evidence, arranged for the questions below.

    ``rows``: every entry that any journal showed, by number, as it was first seen; ``after``: message ID to its
    entries' kinds on disk after each life.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.lives = evidence.lives
        self.history = evidence.history
        self.is_iterating = bool(evidence.lives[0].order["iterates"])
        self.finds = evidence.lives[0].order["finds"]
        self.rows: dict[int, dict[str, Any]] = {}
        for lived in evidence.lives:
            for row in lived.journal:
                self.rows.setdefault(row["number"], row)
        self.by_message: dict[str, list[dict[str, Any]]] = {}
        for number in sorted(self.rows):
            self.by_message.setdefault(self.rows[number]["messageId"], []).append(self.rows[number])
        self.admitted = {
            message_id: rows[0]
            for message_id, rows in self.by_message.items()
            if rows[0]["kind"] in (entries.ADMITTED, entries.REPLY_RECEIVED)
        }

    def standing(self, message_id: str) -> Standing | None:
        return fold(_entry(row) for row in self.by_message.get(message_id, []))

    def stored_before(self, life: int) -> set[str]:
        """IDs that a journal showed after the life before ``life``."""
        return {row["messageId"] for lived in self.lives[:life] for row in lived.journal}

    def placings(self, message_id: str) -> list[dict[str, Any]]:
        return [line for line in self.history if line["id"] == message_id]

    def choices(self, message_id: str, choice: str) -> int:
        words = [said for lived in self.lives for said in lived.words("chose")]
        return sum(said["chose"] == choice and said["id"] == message_id for said in words)


def judge(evidence: Evidence) -> list[str]:
    """Every violation, with the story that repeats it."""
    record = Record(evidence)
    questions = (
        _broke, _kept, _offered_unstored, _lost, _twice, _words, _revived, _answered_twice, _ordered,
        _received_in_order, _doubted, _guarded, _unsent, _attested, _denied, _unadmitted,
    )  # fmt: skip
    return [f"story {evidence.seed}: {found}" for question in questions for found in question(record)]


def _entry(row: dict[str, Any]) -> Entry:
    entry: Entry = parse_record(Entry, {key: value for key, value in row.items() if key != "number"})
    return entry


# ---------------------------------------------------------------- lives and files


def _broke(record: Record) -> Iterator[str]:
    """No life ends by anything but its kill or its own leaving; and each has its journal."""
    for lived in record.lives:
        yield from (f"life {lived.order['life']}: {said['broke']}" for said in lived.words("broke"))
        if lived.end.startswith("status"):
            yield f"life {lived.order['life']} ended with {lived.end}"
        yield from (f"life {lived.order['life']}: {said['note']}" for said in lived.words("joined") if said["note"])


def _kept(record: Record) -> Iterator[str]:
    """What a journal once showed stays, unchanged but for texts that were dropped for room."""
    before: dict[int, dict[str, Any]] = {}
    for lived in record.lives:
        now = {row["number"]: row for row in lived.journal}
        gone = before.keys() - now.keys()
        if gone:
            yield f"life {lived.order['life']} lost {len(gone)} entries of the journal"
        changed = [row for number, row in before.items() if number in now and now[number]["entryId"] != row["entryId"]]
        if changed:
            yield f"life {lived.order['life']} changed entries: {changed[:2]}"
        before = now


def _offered_unstored(record: Record) -> Iterator[str]:
    """Whatever the host has was admitted and handed on disk by then."""
    for line in record.history:
        kinds = {row["kind"] for row in record.lives[line["life"]].journal if row["messageId"] == line["id"]}
        needed = entries.PLACED if record.is_iterating else entries.HANDED
        if not {entries.ADMITTED, needed} <= kinds:
            yield f"{line['id']} was offered in life {line['life']} and only {sorted(kinds)} is stored"
        stored = record.admitted.get(line["id"])
        if stored is not None and _sha256(line["text"]) != stored["body"]["textSha256"]:
            yield f"{line['id']} was placed with a text that was not admitted: {line['text'][:40]!r}"


# ---------------------------------------------------------------- nothing lost, nothing twice


def _lost(record: Record) -> Iterator[str]:
    """Everything admitted has its end, and an end as placed is seen in the host's file."""
    for message_id, first in record.admitted.items():
        standing = record.standing(message_id)
        if first["kind"] == entries.REPLY_RECEIVED or standing is None:
            continue
        if standing.kind not in entries.FINAL:
            yield f"{message_id} was admitted and ended as {standing.kind}"
        elif standing.kind in _TEXT_ENDS and not (record.placings(message_id) or _may_be_untaken(record, message_id)):
            yield f"{message_id} is {standing.kind} on record, and the host does not have it"
        elif standing.kind == entries.DISCARDED and not record.choices(message_id, "discard"):
            yield f"{message_id} was discarded by nobody"
        elif standing.kind == entries.REPLACED and standing.replaced_by not in record.admitted:
            yield f"{message_id} was replaced by {standing.replaced_by}, which was not admitted"


def _may_be_untaken(record: Record, message_id: str) -> bool:
    """A program that iterates and dies between the record and its taking: it is never placed twice."""
    if not record.is_iterating:
        return False
    for lived in record.lives:
        if any(row["messageId"] == message_id and row["kind"] == entries.PLACED for row in lived.journal):
            last = [row for row in lived.journal if row["kind"] == entries.PLACED][-1]
            return bool(last["messageId"] == message_id and lived.end != "left")
    return False


def _twice(record: Record) -> Iterator[str]:
    """At most once, and once more for each time that a person chose to."""
    for message_id in {line["id"] for line in record.history}:
        count, chosen = len(record.placings(message_id)), record.choices(message_id, "place")
        if count > 1 + chosen:
            yield f"{message_id} was placed {count} times, and chosen for that {chosen} times"
    for message_id, rows in record.by_message.items():
        firsts = [row for row in rows if row["kind"] in (entries.ADMITTED, entries.REPLY_RECEIVED)]
        if len(firsts) > 1:
            yield f"{message_id} was admitted {len(firsts)} times"


def _words(record: Record) -> Iterator[str]:
    """What a life was told is on record: replies, decisions, replies that an ask got."""
    for lived in record.lives:
        stored = {(row["messageId"], row["kind"]) for row in lived.journal}
        for said in lived.words("replied"):
            is_open = said["outcome"] in ("refused", "not_sent", "unknown")
            if not is_open and not any((said["replied"], fact) in stored for fact in entries.CLOSING_FACTS):
                yield f"ask {said['replied']} was told to be answered, and that is not stored"
        for said in lived.words("got"):
            if (said["got"], entries.REPLY_RECEIVED) not in stored:
                yield f"reply {said['got']} was given to its ask, and that is not stored"


# ---------------------------------------------------------------- nothing revived


def _revived(record: Record) -> Iterator[str]:
    """An ended message is placed by no later life, a closed question waits in none."""
    for number, lived in enumerate(record.lives):
        ended = {message_id: end for message_id in record.by_message if (end := _ended(record, message_id, number))}
        for line in record.history:
            if line["life"] > number and line["id"] in ended:
                yield f"{line['id']} was {ended[line['id']]} in life {number} and placed in life {line['life']}"
        closed = {row["messageId"] for row in lived.journal if row["kind"] in entries.CLOSING_FACTS}
        for later in record.lives[number + 1 :]:
            views = [view for said in later.words("pending") for view in said["pending"]]
            waiting = {view["id"] for view in views if view["kind"] == "ask"}
            yield from (f"ask {ask} was closed in life {number} and waits later" for ask in closed & waiting)


def _ended(record: Record, message_id: str, number: int) -> str:
    ends = (entries.DISCARDED, entries.REPLACED, entries.REPLY_RECEIVED)
    rows = record.lives[number].journal
    return next((row["kind"] for row in rows if row["messageId"] == message_id and row["kind"] in ends), "")


def _answered_twice(record: Record) -> Iterator[str]:
    answers: dict[str, set[str]] = {}
    for ask_id, reply_id in record.evidence.ledger.answers:
        answers.setdefault(ask_id, set()).add(reply_id)
    yield from (f"ask {ask} got {len(replies)} answers" for ask, replies in answers.items() if len(replies) > 1)


# ---------------------------------------------------------------- order


def _ordered(record: Record) -> Iterator[str]:
    """The non-passive backlog reaches the host as admitted; only a steer overtakes, and only during a turn."""
    can_overtake = record.lives[0].order["steer"] and not record.is_iterating
    last: dict[str, tuple[int, str]] = {}
    for line in record.history:
        first = record.admitted.get(line["id"])
        if first is None or "message" not in first["body"] or record.choices(line["id"], "place"):
            continue
        delivery = first["body"]["message"].get("delivery") or "steer"
        if delivery == "passive":
            continue
        lane = delivery if can_overtake else "all"
        if lane in last and last[lane][0] > first["number"]:
            yield f"{line['id']} was placed behind {last[lane][1]}, which was admitted later"
        last[lane] = (first["number"], line["id"])


def _received_in_order(record: Record) -> Iterator[str]:
    """One sender's messages are admitted as they were sent; what the broker staged may come later."""
    last: dict[str, int] = {}
    for sent in record.evidence.ledger.sent:
        first = record.admitted.get(sent.id)
        if first is None or sent.form in ("replace", "reply") or first["kind"] == entries.REPLY_RECEIVED:
            continue
        if first["body"]["message"]["timestamp"] and first["body"]["from"].get("name") != sent.sender:
            # Its copy was admitted instead.
            continue
        if first["number"] < last.get(sent.sender, 0):
            yield f"{sent.id} of {sent.sender} was admitted before what was sent earlier"
        last[sent.sender] = first["number"]


# ---------------------------------------------------------------- doubts, guards, senders


def _doubted(record: Record) -> Iterator[str]:
    if record.finds == CANNOT_TELL and not record.is_iterating:
        return
    doubted = {row["messageId"] for row in record.rows.values() if row["kind"] == entries.UNCERTAIN}
    yield from (f"{message_id} was uncertain, and its host can tell" for message_id in doubted)


def _guarded(record: Record) -> Iterator[str]:
    """A guarded message is admitted in its own incarnation or never."""
    for sent in record.evidence.ledger.sent:
        first = record.admitted.get(sent.id)
        is_original = first is not None and first["body"]["message"].get("guard") is not None
        if sent.incarnation and first is not None and is_original and first["body"]["generation"] != sent.incarnation:
            yield f"{sent.id} was guarded for {sent.incarnation} and admitted in {first['body']['generation']}"


def _unsent(record: Record) -> Iterator[str]:
    """Nothing that nobody sent, and nothing that was refused."""
    sent = {one.id: one for one in record.evidence.ledger.sent}
    for message_id, first in record.admitted.items():
        if message_id not in sent:
            yield f"{message_id} was admitted, and nobody sent it"
        elif sent[message_id].outcome in ("refused", "not_sent") and first["body"]["from"].get("name") != "copyist":
            yield f"{message_id} was {sent[message_id].outcome}, and is admitted"


def _unadmitted(record: Record) -> Iterator[str]:
    """A life that leaves in order has admitted everything that was delivered to it."""
    last = record.lives[-1]
    if last.end != "left":
        return
    for sent in record.evidence.ledger.sent:
        is_due = sent.of_life == last.order["life"] and sent.outcome == "delivered"
        if is_due and sent.id not in record.admitted:
            yield f"{sent.id} was delivered to the last life, which left in order, and is not admitted"


# ---------------------------------------------------------------- receipts


def _attested(record: Record) -> Iterator[str]:
    """Whatever a receipt claimed is on disk after that life, and a placement in the host's file."""
    for life, message_id, receipt in record.evidence.ledger.receipts:
        if receipt is None:
            continue
        rows = [row for row in record.lives[life].journal if row["messageId"] == message_id]
        yield from (f"a receipt in life {life} {lie}" for lie in _lies(record, record.lives[life], receipt, rows))


def _lies(record: Record, lived: Lived, receipt: dict[str, Any], rows: list[dict[str, Any]]) -> Iterator[str]:
    kinds = {row["kind"] for row in rows}
    claimed = ((entries.QUEUED, "queued"), (entries.HANDED, "nativeHandoff"), (entries.DISCARDED, "discarded"))
    if receipt["checkpointEntryId"] not in {row["entryId"] for row in rows}:
        yield f"claims the checkpoint {receipt['checkpointEntryId']}, which is not stored"
    for kind, member in claimed:
        if receipt[member] and kind not in kinds:
            yield f"claims {member} of {receipt['messageId']}, which is not stored"
    placement = receipt["placementEntryId"]
    if placement is None:
        return
    if entries.PLACED not in kinds:
        yield f"claims a placement of {receipt['messageId']}, which is not stored"
    elif not record.is_iterating and placement not in {line["entry"] for line in record.placings(receipt["messageId"])}:
        yield f"claims the placement {placement}, which the host does not have (life {lived.order['life']})"


def _denied(record: Record) -> Iterator[str]:
    """What an earlier life stored has a receipt."""
    for life, message_id, receipt in record.evidence.ledger.receipts:
        first = record.admitted.get(message_id)
        is_stored = first is not None and first["kind"] == entries.ADMITTED and message_id in record.stored_before(life)
        if receipt is None and is_stored:
            yield f"{message_id} was stored before life {life}, which denied it a receipt"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
