"""``list`` and ``status`` as text (seeds, "Discovery and groups"; wire.md 6.2), for people and for models.

Owns the sentences around a roster. Does not own its contents (``roster``) nor printing them. Every word of a peer
is cleaned for a terminal on its way in.
"""

from __future__ import annotations

from libintercom.printable import make_line
from libintercom.targets import name_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from libintercom.roster import Filters, Roster
    from libintercom.wire.messages import BrokerHello

    Shown = dict[str, Any]

# What prints the children's rows, as a model calls the tool and as a person types it.
TOOL_CHILDREN_CALL = 'intercom({ action: "list", children: true })'
COMMAND_CHILDREN_CALL = "intercomctl list --children"

# Said once, behind the blocks; its words are those of the rows' tags and of the ``delivery`` option.
GUIDANCE = (
    "**Delivery:** the default, steer, wakes an idle session and reaches a busy one after its current tool call. "
    "queue waits for the end of a busy session's turn; passive wakes nobody and is read at the next turn. "
    "A default ask to a session with accepts_asks:false is sent and not waited for; ask with steer or queue to wait."
)
_SECOND_MS, _MINUTE_MS, _HOUR_MS = 1_000, 60_000, 3_600_000
# A thousand years. A peer's clock is a peer's word: any number of 300 digits is a valid time.
_MOST_HOURS = 8_766_000
_UNNAMED = "(unnamed)"
# Enough of a project ID to compare two of them by eye.
_PROJECT_CHARS = 12


def list_text(roster: Roster, now_ms: int, children_call: str = COMMAND_CHILDREN_CALL) -> str:
    """The blocks of a roster; ``now_ms`` is what ages are counted from, in Unix milliseconds."""
    blocks = []
    if roster.own is not None:
        blocks.append(f"**Current session:**\n{row_text(roster.own, roster, now_ms)}")
    blocks.append(_mains_block(roster, now_ms))
    if roster.children is not None:
        blocks.append(_children_block(roster, roster.children, now_ms, children_call))
    if roster.omitted:
        blocks.append(f"{roster.omitted} more did not fit the broker's answer.")
    return "\n\n".join([*blocks, GUIDANCE])


def status_text(
    roster: Roster,
    now_ms: int,
    *,
    session_id: str,
    broker: BrokerHello | None,
    project_id: str | None,
    pending: int,
    children_call: str = COMMAND_CHILDREN_CALL,
) -> str:
    """The header of a connected session, then its list. ``pending`` questions wait for its reply."""
    answers = "older than this program" if broker is None else f"{broker.program} {broker.version}, pid {broker.pid}"
    header = {
        "Connected": "yes",
        "Session ID": session_id,
        "Sessions": str(roster.sessions_total),
        "Pending inbound messages": str(pending),
        "Broker": answers,
        "Project": project_id[:_PROJECT_CHARS] if project_id else "none",
    }
    lines = [f"**{name}:** {make_line(value)}" for name, value in header.items()]
    return "\n".join(lines) + "\n\n" + list_text(roster, now_ms, children_call)


def row_text(shown: Shown, roster: Roster, now_ms: int) -> str:
    """One line of a block."""
    name = make_line(shown["name"] or _UNNAMED)
    tags = ", ".join(make_line(tag) for tag in _tags(shown, roster, now_ms))
    cwd, model = make_line(shown["cwd"]), make_line(shown["model"])
    return f"• {name} ({make_line(shown['target'])}) — Native session cwd: {cwd} ({model}) [{tags}]"


def age_text(at_ms: float, now_ms: float) -> str:
    """How long ago, in whole seconds, minutes or hours; a time in the future is now."""
    passed = max(0, int(now_ms - at_ms))
    if passed < _MINUTE_MS:
        return f"{passed // _SECOND_MS}s ago"
    if passed < _HOUR_MS:
        return f"{passed // _MINUTE_MS}m ago"
    hours = passed // _HOUR_MS
    return f"{hours}h ago" if hours <= _MOST_HOURS else f"over {_MOST_HOURS}h ago"


def _tags(shown: Shown, roster: Roster, now_ms: int) -> list[str]:
    """A row's tags in the order of wire.md 6.2."""
    tags = ["self"] if roster.own is not None and shown["id"] == roster.own["id"] else []
    if shown["status"]:
        tags.append(shown["status"])
    if name_key(shown["name"] or "") in roster.shared_names:
        tags.append(f"target:{shown['target']}")
    tags += [
        f"state:{shown['state']}",
        f"accepts_asks:{_claim(shown['acceptsAsks'])}",
        f"pending_asks:{_count(shown['pendingAsks'])}",
        f"last_intercom_activity:{_age(shown['lastIntercomActivityMs'], now_ms, 'none')}",
        f"last_seen:{_age(shown['lastSeenMs'], now_ms, 'unknown')}",
    ]
    return [*tags, "stalled"] if shown.get("stalled") else tags


def _mains_block(roster: Roster, now_ms: int) -> str:
    if not roster.mains_total:
        return "**Main sessions (0):** no other one is connected."
    counted = _counted(len(roster.mains), roster.mains_total, roster.filters)
    return _block("Main sessions", counted, roster.mains, roster, now_ms)


def _children_block(roster: Roster, children: Shown, now_ms: int, children_call: str) -> str:
    counted = _counted(children["matching"], children["total"], roster.filters)
    if "rows" in children:
        return _block("Child sessions", counted, children["rows"], roster, now_ms)
    states = ", ".join(f"{count} {state}" for state, count in children["byState"].items() if count)
    return f"**Child sessions ({counted}):** {states}. Their rows: {children_call}"


def _block(title: str, counted: str, rows: list[Shown], roster: Roster, now_ms: int) -> str:
    return "\n".join([f"**{title} ({counted}):**", *(row_text(shown, roster, now_ms) for shown in rows)])


def _counted(matching: int, total: int, filters: Filters) -> str:
    if not filters.narrows:
        return str(total)
    named = f' match "{make_line(filters.to)}"' if filters.to else ""
    return f"{matching} of {total}{named}{' in this project' if filters.project_id is not None else ''}"


def _claim(value: bool | None) -> str:
    return "unknown" if value is None else str(value).lower()


def _count(value: int | None) -> str:
    return "unknown" if value is None else str(value)


def _age(at_ms: int | None, now_ms: int, missing: str) -> str:
    return missing if at_ms is None else age_text(at_ms, now_ms)
