"""What a broker promised, life after life, and what came of it. Pure.

Owns the promises (parked, queued, kept, dropped, dead) and the questions to them; each is asked when something is
heard that could break one. Does not own saying anything (``broker_story``).

A *fence* is any promise heard later in the same life, but for dead letters, which may have been told long before they
are heard: the spool keeps the order, so what left it before a fence has left it for good.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SENT, PROMISED, REFUSED = "sent", "promised", "refused"


@dataclass
class Input:
    """One message for a parked child, in the order of sending. ``heard``: the lives in which the child got it."""

    id: str
    sender: str
    child: str
    state: str = SENT
    heard: list[int] = field(default_factory=list)
    # It left the spool, and a later promise of that life was heard.
    is_gone: bool = False
    # ``asked``: its child was to be dropped (``earlier``: and again); ``told``: it was said to be.
    dropped: str = ""


@dataclass
class Question:
    """One ask whose reply is kept."""

    id: str
    token: str
    reply: str = ""
    is_promised: bool = False
    is_acknowledged: bool = False
    is_gone: bool = False


class Ledger:
    """``violations`` says what was broken; ``counts`` what was heard."""

    def __init__(self) -> None:
        self.life = 0
        self.inputs: dict[str, Input] = {}
        self.questions: dict[str, Question] = {}
        # By sender: dead letters that were told when they were made, and those listed last.
        self.letters: dict[str, set[str]] = {}
        self.listed: dict[str, set[str]] = {}
        self.parked: set[str] = set()
        self.violations: list[str] = []
        # What left the spool in this life without a fence behind it.
        self._leaving: list[Input | Question] = []

    def begin_life(self) -> None:
        self.life += 1
        self._leaving.clear()

    def _fence(self) -> None:
        for one in self._leaving:
            one.is_gone = True
        self._leaving.clear()

    def _break(self, what: str) -> None:
        self.violations.append(f"life {self.life}: {what}")

    # ------------------------------------------------------------------ parking

    def promise_park(self, child: str) -> None:
        self.parked.add(child)
        self._fence()

    def promise_input(self, message_id: str) -> None:
        self.inputs[message_id].state = PROMISED
        self._fence()

    def refuse_input(self, message_id: str, code: str) -> None:
        """A parked child has room for what is sent here: no refusal is due."""
        one = self.inputs[message_id]
        one.state = REFUSED
        if one.child in self.parked:
            self._break(f"{one.child} was parked, and {message_id} for it was refused: {code}")

    def ask_drop(self, child: str) -> None:
        for one in self._waiting(child):
            one.dropped = "earlier" if one.dropped else "asked"

    def promise_drop(self, child: str, count: int) -> None:
        self.parked.discard(child)
        waiting = self._waiting(child)
        sure = [one for one in waiting if one.state == PROMISED and not one.heard and one.dropped != "earlier"]
        if count < len(sure):
            self._break(f"{child} was dropped with {count} messages, and {len(sure)} were promised to wait")
        for one in waiting:
            one.dropped = "told"

    def _waiting(self, child: str) -> list[Input]:
        return [one for one in self.inputs.values() if one.child == child and not one.is_gone and one.state != REFUSED]

    # ------------------------------------------------------------------ what a child gets

    def hear(self, child: str, message_ids: list[str], *, is_all: bool) -> None:
        """What a child got when it came; ``is_all``: nothing more can have waited for it."""
        order = list(self.inputs)
        last = -1
        for message_id in message_ids:
            one = self.inputs.get(message_id)
            if one is None or one.child != child:
                self._break(f"{child} got {message_id}, which nobody sent to it")
                continue
            if order.index(message_id) < last:
                self._break(f"{message_id} came behind {order[last]}, which was sent later")
            last = max(last, order.index(message_id))
            self._judge_heard(one)
            one.heard.append(self.life)
            self._leaving.append(one)
        for one in self._waiting(child) if is_all else ():
            if one.state == PROMISED and not one.heard and one.dropped == "":
                self._break(f"{one.id} was promised to {child} and did not come")

    def _judge_heard(self, one: Input) -> None:
        if one.is_gone or self.life in one.heard:
            self._break(f"{one.id} came again to {one.child}")
        if one.state == REFUSED:
            self._break(f"{one.id} was refused and came")
        if one.dropped == "told":
            self._break(f"{one.id} was told to be dropped and came again")

    # ------------------------------------------------------------------ late replies

    def promise_reply(self, question_id: str) -> None:
        self.questions[question_id].is_promised = True
        self._fence()

    def acknowledge(self, question_id: str) -> None:
        question = self.questions[question_id]
        question.is_acknowledged = True
        self._leaving.append(question)

    def fetch(self, question_id: str, state: str, reply_id: str) -> None:
        question = self.questions[question_id]
        if question.is_promised and not question.is_acknowledged and state != "replied":
            self._break(f"the reply to {question_id} was kept, and now it is {state}")
        if question.is_gone and state == "replied":
            self._break(f"the reply to {question_id} was taken away and is there again")
        if state == "replied" and reply_id != question.reply:
            self._break(f"the reply to {question_id} is {reply_id}, not {question.reply}")

    # ------------------------------------------------------------------ dead letters

    def promise_letter(self, sender: str, message_id: str) -> None:
        self.letters.setdefault(sender, set()).add(message_id)
        one = self.inputs.get(message_id)
        if one is None or not one.dropped:
            self._break(f"a letter says that {message_id} died, which nobody dropped")
        else:
            one.is_gone = True
        # No fence: it may have lain in a socket that nobody read, told before what left since.

    def account(self) -> None:
        """At the end: whatever was promised and never came has a letter that says so."""
        for one in self.inputs.values():
            if one.state == PROMISED and not one.heard and one.id not in self.listed.get(one.sender, set()):
                self._break(f"{one.id} was promised, never came, and no letter says that it died")

    def list_letters(self, sender: str, message_ids: set[str]) -> None:
        self.listed[sender] = message_ids
        for message_id in self.letters.get(sender, set()) - message_ids:
            self._break(f"the letter about {message_id} was told to {sender} and is not there")
