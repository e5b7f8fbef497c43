"""`intercomctl status`: is there a broker, which one, and who is connected.

Owns the command. The text is ``libintercom.list_texts``'s.
"""

from __future__ import annotations

import time

from intercomctl import joining, output, shapes
from intercomctl.options import JSON, SESSION_ID, Command
from libintercom.list_texts import status_text
from libintercom.paths import find_places

# What stands for the session ID of a command that is no session.
_NO_SESSION = "none (this command only looks)"


def run(session_id: str | None, *, as_json: bool) -> int:
    """Print the header and the roster."""
    with joining.observe(session_id) as client:
        roster = joining.read_roster(client)
        broker, project_id = client.broker, client.profile.project_id
    own_id = None if roster.own is None else roster.own["id"]
    pending = 0 if roster.own is None else roster.own["pendingAsks"] or 0
    if as_json:
        header = {"connected": True, "sessionId": own_id, "sessions": roster.sessions_total, "pendingAsks": pending}
        place = {"broker": shapes.broker(broker), "socket": find_places().socket, "projectId": project_id}
        output.emit({**header, **place, **roster.dump()})
        return 0
    now_ms = int(time.time() * 1000)
    session = own_id or _NO_SESSION
    output.say(status_text(roster, now_ms, session_id=session, broker=broker, project_id=project_id, pending=pending))
    return 0


COMMAND = Command(
    "status",
    run,
    "Say which broker answers, and list the connected sessions.\n\n"
    "Inside a child's shell the view is that child's. The command looks as an observer: it is no session and shows in "
    "no list.",
    SESSION_ID,
    JSON,
)
