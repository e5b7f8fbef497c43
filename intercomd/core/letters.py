"""Dead letters: accepted messages that can no longer arrive (wire.md 9.8).

Owns the list of them and telling their senders. A letter holds no body. It is announced once its store
answered, so that what is told is also kept.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from intercomd.core.items import LETTER
from libintercom.wire.answers import DeadLetterNotice, DeadLetters
from libintercom.wire.frames import MAX_FRAME_BYTES, encode_json
from libintercom.wire.messages import DeadLetter
from libintercom.wire.record import dump_record, parse_record

if TYPE_CHECKING:
    from intercomd.core.items import Author, Item, Lineage
    from intercomd.core.limits import Limits
    from intercomd.core.roster import Roster, Session
    from intercomd.core.storing import Storing
    from intercomd.core.turn import Turn

_MS_PER_S = 1000
# As long as a UUID.
_ID_BYTES = 16
# What a frame of letters holds beside the letters and its request id.
_FRAME_RESERVE_BYTES = 128


@dataclass(slots=True)
class Kept:
    """A letter, the lineage of its sender, and its size in an answer.

    A peer ID may come back with another lineage: that session may not even know of this one's recipients.
    """

    letter: DeadLetter
    lineage: Lineage
    size_bytes: int

    def is_of(self, session: Session) -> bool:
        return self.letter.sender_id == session.peer_id and self.lineage == session.lineage


class Letters:
    """The newest dead letters, bounded in number and age."""

    def __init__(self, limits: Limits, roster: Roster, turn: Turn, storing: Storing, incarnation: str) -> None:
        self._limits, self._roster, self._turn, self._storing = limits, roster, turn, storing
        self._incarnation = incarnation
        self._kept: deque[Kept] = deque()
        self._unstored: dict[str, Kept] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def bury(self, sender: Session | Author, recipient_id: str, message_id: str, reason: str) -> None:
        """A message died."""
        letter = DeadLetter(
            id=_letter_id(self._incarnation, sender.peer_id, recipient_id, message_id, self._turn.at_ms),
            sender_id=sender.peer_id,
            recipient_id=recipient_id,
            message_id=message_id,
            reason=reason,
            at_ms=self._turn.at_ms,
        )
        kept = Kept(letter, sender.lineage, len(encode_json(dump_record(letter))) + 1)
        self._unstored[letter.id] = kept
        self._keep(kept)
        self._storing.store(LETTER, letter.id, {"letter": dump_record(letter), "lineage": list(kept.lineage)})

    def recover(self, item: Item) -> None:
        """A letter that an earlier broker kept; its sender may still look for it."""
        facts = item.read()
        letter = parse_record(DeadLetter, facts["letter"])
        root, parent = facts["lineage"]
        self._keep(Kept(letter, (root, parent), len(encode_json(facts["letter"])) + 1))

    def stored(self, letter_id: str) -> None:
        """The store kept a letter: its sender may know now."""
        self._announce(letter_id)

    def store_failed(self, letter_id: str, reason: str) -> None:
        """The store could not keep a letter. It stays in memory, and its sender is told all the same."""
        self._turn.log("error", "dead letter not stored", letter=letter_id, reason=reason)
        self._announce(letter_id)

    def of_sender(self, sender: Session, request_id: str, since_ms: float) -> tuple[DeadLetters, int]:
        """A session's own letters since a time, oldest first, as many as fit a frame; and the answer's size."""
        self._drop_old()
        own = [kept for kept in self._kept if kept.is_of(sender) and kept.letter.at_ms >= since_ms]
        size_bytes = _FRAME_RESERVE_BYTES + len(encode_json(request_id))
        fitting: list[DeadLetter] = []
        for kept in own:
            if size_bytes + kept.size_bytes > MAX_FRAME_BYTES:
                break
            size_bytes += kept.size_bytes
            fitting.append(kept.letter)
        omitted = len(own) - len(fitting)
        return DeadLetters(request_id=request_id, letters=tuple(fitting), omitted=omitted or None), size_bytes

    def _announce(self, letter_id: str) -> None:
        kept = self._unstored.pop(letter_id, None)
        sender = self._roster.sessions.get(kept.letter.sender_id) if kept else None
        if kept and sender and sender.has_ext and kept.is_of(sender):
            letter = kept.letter
            notice = DeadLetterNotice(
                message_id=letter.message_id,
                recipient_id=letter.recipient_id,
                reason=letter.reason,
                at_ms=letter.at_ms,
            )
            self._turn.write(sender.conn, notice)

    def _keep(self, kept: Kept) -> None:
        self._kept.append(kept)
        if len(self._kept) > self._limits.letters:
            self._drop_oldest()
        self._drop_old()

    def _drop_old(self) -> None:
        oldest_ms = self._turn.at_ms - self._limits.letters_s * _MS_PER_S
        while self._kept and self._kept[0].letter.at_ms < oldest_ms:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        self._storing.forget(self._kept.popleft().letter.id)


def _letter_id(*parts: object) -> str:
    """Made of the letter's own facts: a number counted over all would tell that others' messages died too.

    The broker's incarnation among them keeps ids of different broker lives apart.
    """
    return blake2b("\0".join(map(str, parts)).encode("utf-8", "surrogatepass"), digest_size=_ID_BYTES).hexdigest()
