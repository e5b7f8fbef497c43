"""Who a session sees, arranged as ``list`` and ``status`` show it and as ``intercomctl list --json`` prints it. Pure.

Owns the two blocks, their filters, counts and order, and a row's state. Does not own the rows (the broker decides
who may see whom) nor the text around them (``list_texts``). Row values are exact, never cleaned for a terminal.
"""

from __future__ import annotations

from libintercom.targets import display_targets, name_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from libintercom.outcomes import Listing
    from libintercom.profile import Profile
    from libintercom.wire.messages import Row

    Shown = dict[str, Any]

IDLE, BUSY, UNKNOWN = "idle", "busy", "unknown"
STATES = (IDLE, BUSY, UNKNOWN)
# Sorts behind every hexadecimal project ID (wire.md 14.10).
_NO_PROJECT = "~"


class Filters:
    """What a list is narrowed to: a text within name or ID, one project, and whether children get rows."""

    __slots__ = ("project_id", "to", "with_children")

    def __init__(self, to: str = "", project_id: str | None = None, *, with_children: bool = False) -> None:
        self.to, self.project_id, self.with_children = to, project_id, with_children

    def keeps(self, row: Row) -> bool:
        """Whether a row stays; letter case is ignored."""
        text = self.to.lower()
        is_named = text in row.id.lower() or text in (row.name or "").lower()
        return is_named and (self.project_id is None or row.project_id == self.project_id)

    @property
    def narrows(self) -> bool:
        return bool(self.to) or self.project_id is not None


class Roster:
    """One view: ``own`` row, other ``mains``, and the caller's group as ``children`` (None when it has none).

    ``mains_total`` counts the mains before filtering, ``omitted`` the rows that the broker could not send.
    ``children`` is ``{"total", "matching", "byState", "rows"?}``; ``byState`` counts all of them.
    """

    def __init__(self, own: Shown | None, mains: list[Shown], mains_total: int, children: Shown | None) -> None:
        self.own, self.mains, self.mains_total, self.children = own, mains, mains_total, children
        self.omitted = 0
        self.filters = Filters()
        # Names (as they compare) that more than one session here has.
        self.shared_names: frozenset[str] = frozenset()

    @property
    def sessions_total(self) -> int:
        """Everybody in view, this session included."""
        children = 0 if self.children is None else self.children["total"]
        return int(self.own is not None) + self.mains_total + int(children)

    def dump(self) -> Shown:
        """The members of ``intercomctl list --json`` beside its version."""
        return {
            "self": self.own,
            "mains": self.mains,
            "mainsTotal": self.mains_total,
            "omitted": self.omitted,
            "children": self.children,
        }


def build_roster(listing: Listing, viewer: Profile, session_id: str, filters: Filters | None = None) -> Roster:
    """Arrange a listing for the session ``session_id`` with the lineage of ``viewer``."""
    chosen = filters or Filters()
    rows = sorted(listing.rows, key=_order)
    targets = display_targets((row.id, row.name) for row in rows)
    own = next((row for row in rows if row.id == session_id), None)
    others = [row for row in rows if row.id != session_id and _is_in_view(row, viewer)]
    mains = [row for row in others if row.parent_session_id is None]
    children = [row for row in others if row.parent_session_id is not None]
    roster = Roster(
        own=show_row(own, targets[own.id]) if own is not None else None,
        mains=[show_row(row, targets[row.id]) for row in mains if chosen.keeps(row)],
        mains_total=len(mains),
        children=_show_children(children, targets, chosen) if children else None,
    )
    roster.omitted, roster.filters = listing.omitted, chosen
    roster.shared_names = shared_names(row.name for row in [*others, *([own] if own is not None else [])])
    return roster


def show_row(row: Row, target: str) -> Shown:
    """One row for JSON. A member is None when the session did not say; times are Unix milliseconds."""
    shown: Shown = {
        "id": row.id,
        "name": row.name,
        "target": target,
        "cwd": row.cwd,
        "model": row.model,
        "status": row.status,
        "state": state_of(row),
        "acceptsAsks": row.accepts_asks,
        "pendingAsks": _whole(row.pending_asks),
        "lastSeenMs": _whole(row.last_seen),
        # Clients start it at 0, which means "none yet".
        "lastIntercomActivityMs": _whole(row.last_intercom_activity) or None,
        "projectId": row.project_id,
    }
    if row.stalled:
        shown["stalled"] = True
    return shown


def state_of(row: Row) -> str:
    """``idle``, ``busy`` or ``unknown``: what a session says about asks wins over its status."""
    if row.accepts_asks is not None:
        return IDLE if row.accepts_asks else BUSY
    if row.status is None:
        return UNKNOWN
    return IDLE if row.status == "idle" or row.status.startswith("idle ") else BUSY


def _is_in_view(row: Row, viewer: Profile) -> bool:
    """The group rule again, for old brokers that show everybody; one of ours shows nobody else."""
    is_same_group = row.root_session_id == viewer.root_session_id
    return is_same_group or (row.parent_session_id is None and viewer.parent_session_id is None)


def _show_children(children: list[Row], targets: dict[str, str], filters: Filters) -> Shown:
    matching = [row for row in children if filters.keeps(row)]
    states = [state_of(row) for row in children]
    shown: Shown = {
        "total": len(children),
        "matching": len(matching),
        "byState": {state: states.count(state) for state in STATES},
    }
    # A text was looked for, or rows were asked for.
    if filters.to or filters.with_children:
        shown["rows"] = [show_row(row, targets[row.id]) for row in matching]
    return shown


def shared_names(names: Iterable[str | None]) -> frozenset[str]:
    """The names (as they compare) that more than one session has."""
    seen: set[str] = set()
    shared: set[str] = set()
    for name in names:
        key = name_key(name or "")
        (shared if key in seen else seen).add(key)
    return frozenset(shared - {""})


def _order(row: Row) -> tuple[str, str, str]:
    return (row.project_id or _NO_PROJECT, (row.name or "").lower(), row.id)


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)
