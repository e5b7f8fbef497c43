"""`intercomctl list`: who is connected, in two blocks.

Owns the command. Who is in view is the broker's, the blocks are ``libintercom.roster``'s, their text
``libintercom.list_texts``'s.
"""

from __future__ import annotations

import time

from intercomctl import joining, output
from intercomctl.options import JSON, SESSION_ID, Command, flag, option
from libintercom.roster import Filters

PROJECT = "project"


def run(
    to: str | None, session_id: str | None, scope: str | None, device: str | None, *, children: bool, as_json: bool
) -> int:
    """Print the roster."""
    if device is not None:
        # Imported here: no other device is thought of unless one is named.
        from intercomctl import devicing

        devicing.refuse_combination(scope=scope, children=children, session_id=session_id)
        return devicing.list_sessions(device, to or "", as_json=as_json)
    with joining.observe(session_id) as client:
        project_id = client.profile.project_id if scope == PROJECT else None
        roster = joining.read_roster(client, Filters(to or "", project_id, with_children=children))
    if as_json:
        output.emit(roster.dump())
        return 0
    # Imported here: --json does without the sentences.
    from libintercom.list_texts import list_text

    output.say(list_text(roster, int(time.time() * 1000)))
    return 0


COMMAND = Command(
    "list",
    run,
    "List the connected sessions.\n\n"
    "First the main sessions, one line each, then the child sessions of the caller's group, as a count. Inside a "
    "child's shell the list is that child's: its main and the other children. The command looks as an observer: it is "
    "no session and shows in no list.\n\nExample: intercomctl list --to review --children",
    option("--to", "Keep the sessions whose name or ID contains this text, ignoring case.", metavar="TEXT"),
    flag("--children", "Print a line for each child instead of the count."),
    option("--scope", "Keep the sessions of this directory's project.", metavar=PROJECT, choices=(PROJECT,)),
    option(
        "--device",
        "List the main sessions of another device over ssh, or of all of them, instead of this one's.",
        metavar="NAME|all",
    ),
    SESSION_ID,
    JSON,
)
