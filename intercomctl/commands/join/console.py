"""A joined session's face towards a person: what was typed, and what is shown.

Owns the typed commands and the lines that are shown. Pure: what it says goes to the callable it is given. Does not
own carrying the actions out (``membership``) nor the words of messages and results (``libintercom.texts``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from intercomctl import failures
from intercomctl.commands.join.actions import ASK, LIST, PENDING, QUIT, REPLY, SEND, STATUS, Action
from libintercom import list_texts, read_texts, texts
from libintercom.outcomes import UNKNOWN
from libintercom.printable import make_line
from libintercom.roster import Filters, build_roster

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from libintercom.inbound import AskEnded, Inbound, LetterDied
    from libintercom.outcomes import Listing, Outcome
    from libintercom.session.aio import AsyncSession

# What begins a command; twice, a reply that begins with it.
MARK = "/"
HELP = """\
A line is the reply to the question that waits for one; when several wait,
name one with /reply.
  /send TARGET TEXT   send a message
  /ask TARGET TEXT    ask; the reply is shown when it comes
  /reply ID TEXT      reply to a question
  /pending            the questions that wait for a reply
  /list               who is connected
  /status             the same, with the broker and this session
  /quit               leave (so does the end of the input)
A TARGET with spaces goes in double quotes. A reply that starts with a slash
starts with two."""
# Before each line of a peer's text: whatever stands there, it is none of this program's own lines.
QUOTE = "> "
# How a question is answered here.
REPLY_CALL = "type it, or /reply {id} TEXT"

_WITH_TARGET = {"send": SEND, "ask": ASK}
_ALONE = {"pending": PENDING, "list": LIST, "status": STATUS, "quit": QUIT}


class Console:
    """Reads typed lines and shows what happens. ``say`` prints some lines; ``now_ms`` is Unix milliseconds."""

    def __init__(self, say: Callable[[str], None], now_ms: Callable[[], int]) -> None:
        self._say, self._now_ms = say, now_ms
        # What the senders of messages are called, until they leave.
        self._names: dict[str, str] = {}

    def read(self, line: str) -> Action | None:
        """The action of a typed line; None when there is none to be carried out."""
        text = line.strip()
        if not text:
            return None
        if not text.startswith(MARK) or text.startswith(MARK * 2):
            return Action(kind=REPLY, text=text.removeprefix(MARK) if text.startswith(MARK) else line)
        word, _, rest = text.removeprefix(MARK).partition(" ")
        action = read_command(word, rest.strip())
        if action is None:
            self._say(HELP if word == "help" else f"{MARK}{word}: not understood.\n{HELP}")
        return action

    def refuse(self, reason: str) -> None:
        """A line could not be read."""
        self._say(reason)

    # ------------------------------------------------------------------ answers to actions

    def sent(self, action: Action, outcome: Outcome) -> None:
        """What became of a send, a reply, or the question of an ask (whose refusal ``failed`` tells)."""
        to = action.to or ""
        if outcome.is_accepted:
            self._say({REPLY: "Reply sent.", ASK: f"Asked {to}."}.get(action.kind) or texts.sent_text(to, outcome, {}))
        elif action.kind == REPLY and outcome.outcome != UNKNOWN:
            self._say(make_line(f"Reply not sent: {outcome.reason}."))
        elif action.kind != ASK:
            self._say(texts.failed_send_text(to, outcome) + failures.hint_at_roster(outcome, f"{MARK}list"))

    def replied(self, action: Action, reply: Inbound) -> None:
        """The reply to an ask."""
        self._say(f"**Reply from {make_line(action.to or '')}:**\n{_quote(reply)}")

    def failed(self, _action: Action, reason: str, _ended_by: str = "") -> None:
        """An action could not be carried out, or an ask ended without a reply."""
        self._say(make_line(reason))

    def listed(self, action: Action, session: AsyncSession, listing: Listing) -> None:
        """The sessions there are."""
        roster = build_roster(listing, session.profile, session.session_id, Filters(with_children=True))
        if action.kind == LIST:
            self._say(list_texts.list_text(roster, self._now_ms()))
            return
        self._say(
            list_texts.status_text(
                roster,
                self._now_ms(),
                session_id=session.session_id,
                broker=session.broker,
                project_id=session.profile.project_id,
                pending=len(session.pending()),
            )
        )

    def told_pending(self, _action: Action, views: Sequence[Mapping[str, Any]]) -> None:
        """The questions that wait for a reply of this session, oldest first."""
        listed = read_texts.views_text("Pending asks", views, self._now_ms()) if views else "No ask is pending here."
        self._say(listed)

    def changed(self, _action: Action) -> None:
        """Nothing that a person can type changes the presence."""

    # ------------------------------------------------------------------ what happens by itself

    def joined(self, session: AsyncSession) -> None:
        """The session is there; always the first thing shown, and the first after ``disconnected``."""
        self._say(f"Joined as {session.profile.name} ({session.session_id}). {MARK}help says what can be typed.")

    def arrived(self, inbound: Inbound) -> None:
        """A message that no ask of this session waited for."""
        self._names[inbound.row.id] = inbound.sender
        age = list_texts.age_text(inbound.message.timestamp, self._now_ms())
        self._say(f"[{age}] {texts.banner_text(inbound, REPLY_CALL)}\n\n{_quote(inbound)}")

    def peer_left(self, session_id: str) -> None:
        """A session that this one exchanged messages with is gone."""
        name = self._names.pop(session_id, None)
        self._say(make_line(f"{session_id} left." if name is None else f"{name} ({session_id}) left."))

    def ask_retired(self, ended: AskEnded) -> None:
        """Nobody waits for an answer to a question any more."""
        self._say(make_line(f"Nobody waits any more for a reply to {ended.message_id} ({ended.reason})."))

    def letter_died(self, letter: LetterDied) -> None:
        """An accepted message can no longer arrive."""
        dead = f"Message {letter.message_id} to {letter.recipient_id} can no longer arrive ({letter.reason})."
        self._say(make_line(dead))

    def disconnected(self, reason: str) -> None:
        """The broker is gone."""
        self._say(make_line(f"Disconnected: {reason}. This session joins again by itself."))

    def end(self, _reason: str) -> None:
        """Nothing is owed to a person."""


def _quote(inbound: Inbound) -> str:
    return QUOTE + texts.content_text(inbound.message.content).replace("\n", f"\n{QUOTE}")


def read_command(word: str, rest: str) -> Action | None:
    """The action of a command and what follows it; None when it is none."""
    if word in _ALONE:
        return None if rest else Action(kind=_ALONE[word])
    target, text = _split_target(rest)
    if not target or not text:
        return None
    if word in _WITH_TARGET:
        return Action(kind=_WITH_TARGET[word], to=target, text=text)
    return Action(kind=REPLY, reply_to=target, text=text) if word == "reply" else None


def _split_target(rest: str) -> tuple[str, str]:
    """The first word, or what stands between double quotes, and the text behind it."""
    if rest.startswith('"'):
        target, _, text = rest[1:].partition('"')
    else:
        target, _, text = rest.partition(" ")
    return target, text.strip()
