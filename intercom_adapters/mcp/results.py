"""What a call of the tool comes to: a text for a model, facts for a program. Pure.

Owns both halves and the rule that joins them: many hosts hand a model only one of the two, so whoever reads only the
facts finds the text among them, and a failure's text names what its facts do. Does not own the sentences
(``libintercom.texts``) nor the protocol's own types (``server``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from libintercom.texts import waiting_text
from libintercom.wire.record import dump_record

if TYPE_CHECKING:
    from libintercom.outcomes import Outcome

# The member of the facts that repeats the text.
TEXT = "text"


@dataclass(frozen=True)
class Result:
    """One result. ``facts`` is None where the text is everything (lists and messages would only be said twice).

    ``shown`` are the IDs of messages that the text shows; they are placed once it was written.
    """

    text: str
    facts: dict[str, Any] | None = None
    is_error: bool = False
    shown: tuple[str, ...] = ()

    def ended(self, waiting: int) -> Result:
        """The same with the line about messages that wait and were not shown, if any do."""
        text = f"{self.text}\n\n{waiting_text(waiting)}" if waiting else self.text
        text = make_encodable(text)
        facts = None if self.facts is None else {**self.facts, TEXT: text}
        return Result(text, facts, self.is_error, self.shown)


def outcome_facts(outcome: Outcome) -> dict[str, Any]:
    """``outcome, messageId, deliveryUnknown``, and ``accepted`` and ``delivered`` where they are known."""
    return dump_record(outcome)


def unsent_facts(code: str, reason: str) -> dict[str, Any]:
    """A message that was never made: nothing left this program."""
    return {"outcome": "not_sent", "code": code, "reason": reason} | {
        "accepted": False,
        "delivered": False,
        "deliveryUnknown": False,
    }


def make_encodable(text: str) -> str:
    """The text as UTF-8 can hold it: the last step before a host, so a lone surrogate is replaced here."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
