"""`intercomctl pending`: what waits for a session's reply, whether the session is live or not.

Owns the command. What waits is the session's own journal's word, or the live process's; the lines are
``libintercom.read_texts``'s.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from intercomctl import joining, output, owning
from intercomctl.options import AS_NAME, JSON, SESSION_ID, Command, flag
from libintercom import read_texts
from libintercom.errors import EXIT_DONE
from libintercom.printable import make_line

if TYPE_CHECKING:
    from typing import Any

    from libintercom.session.journal import Journal

    View = dict[str, Any]

# The blocks, in their order: the kind of the views in one, and its title.
_BLOCKS = (
    ("ask", "Questions that wait for a reply"),
    ("uncertain", "Perhaps shown before their session ended; a person decides"),
    ("message", "Messages that were not read yet"),
)


def run(as_name: str | None, session_id: str | None, *, is_mine: bool, as_json: bool) -> int:
    """Print what waits for one session, or in how many sessions questions wait, or what one's own questions brought."""
    if is_mine:
        from intercomctl.commands.pending import mine  # imported here: another half of the command

        return mine.show(as_name, session_id, as_json=as_json)
    native_id = owning.find_native(as_name, session_id)
    if not native_id:
        return _show_sessions(as_json=as_json)
    held = owning.open_journal(native_id)
    if isinstance(held, Exception):
        from libintercom.session import errands

        views = owning.ask_holder(held, native_id, as_name, errands.PENDING)["pending"]
    else:
        with held as journal:
            views = _read(journal)
    if as_json:
        output.emit({"nativeId": native_id, "isLive": isinstance(held, Exception), "pending": views})
    else:
        output.say(_text(views) or "Nothing waits.")
    return EXIT_DONE


def _read(journal: Journal) -> list[View]:
    """What a session that is not live left unfinished, as the live one would tell it."""
    from libintercom.session.views import stored_views  # imported here: a live session tells its own

    return stored_views(journal.unfinished())


def _text(views: list[View]) -> str:
    now_ms = int(time.time() * 1000)
    blocks = []
    for kind, title in _BLOCKS:
        kept = [view for view in views if view["kind"] == kind]
        if kept:
            blocks.append(read_texts.views_text(title, kept, now_ms))
    return "\n\n".join(blocks)


def _show_sessions(*, as_json: bool) -> int:
    """Every visible session in which questions wait, as its row says."""
    with joining.observe() as client:
        roster = joining.read_roster(client)
    shown = [*roster.mains, *((roster.children or {}).get("rows", [])), *([roster.own] if roster.own else [])]
    waiting = [row for row in shown if row["pendingAsks"]]
    if as_json:
        output.emit({"sessions": waiting})
        return EXIT_DONE
    lines = [
        f"• {make_line(row['name'] or row['id'])} ({make_line(row['target'])}): {row['pendingAsks']}" for row in waiting
    ]
    output.say("\n".join(["Questions wait in:", *lines]) if lines else "No question waits in any session.")
    return EXIT_DONE


COMMAND = Command(
    "pending",
    run,
    "Print what waits for a session's reply: questions, and messages that it did not read yet.\n\n"
    "The session is the one that joined under --as NAME in this directory, or --session-id, or "
    "INTERCOM_NATIVE_SESSION_ID; it may be connected elsewhere or not at all. Without any of them: the sessions in "
    "which questions wait.\n\n"
    "--mine is the other direction: the replies to questions that `intercomctl ask` asked and no longer waits for. "
    "They are printed once.\n\n"
    "Example: intercomctl pending --as reviewer",
    flag("--mine", "Fetch the late replies to your own questions.", name="is_mine"),
    AS_NAME,
    SESSION_ID,
    JSON,
)
