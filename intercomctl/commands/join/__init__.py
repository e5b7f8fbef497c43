"""`intercomctl join`: stay connected as a named session, for a person or for a script.

Owns the command; the parts are beside it: ``membership`` (the session at work), its two faces ``console`` and
``jsonl``, what can be done (``actions``) and how lines are read (``lines``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomctl import joining, output, owning
from intercomctl.options import SESSION_ID, Command, argument, flag

if TYPE_CHECKING:
    from intercomctl.commands.join.membership import Face


def run(name: str, session_id: str | None, *, is_jsonl: bool) -> int:
    """Join and stay until the input ends."""
    with owning.claim_native(name, session_id) as claim:
        # A session that somebody or something reads at once: it is idle.
        profile = joining.speaking_profile(name, claim.native_id, status="idle")
        # Imported here: an event loop takes as long to load as everything else together.
        from intercomctl.commands.join.membership import stay

        return stay(profile, claim.native_id, _face(is_jsonl=is_jsonl))


def _face(*, is_jsonl: bool) -> Face:
    # Imported here: registering the command needs none of it.
    from intercomctl.commands.join.console import Console
    from intercomctl.commands.join.jsonl import JsonLines
    from libintercom.member import now_ms

    if is_jsonl:
        return JsonLines(output.emit)
    return Console(output.say, now_ms)


COMMAND = Command(
    "join",
    run,
    "Stay connected as a named session: what arrives is shown, what is typed is sent.\n\n"
    "A typed line is the reply to the question that waits; /help lists the rest. The end of the input leaves.\n\n"
    "NAME keeps one native session for each directory: what was not shown, and the questions that were not answered, "
    "are there again when it joins the next time. A broker that goes is joined again when it is back.\n\n"
    "With --jsonl each line of standard input is one action and each line printed one event, as JSON; every action is "
    "answered once under its requestId, an ask twice (sent, then message or error). A bad line is answered by an "
    "error event.\n\nExample: intercomctl join reviewer",
    argument("name", "The name under which others see this session.", metavar="NAME"),
    flag("--jsonl", "Actions in and events out, one JSON object a line, for scripts.", name="is_jsonl"),
    SESSION_ID,
)
