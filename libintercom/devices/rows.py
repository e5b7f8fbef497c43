"""The rows that another device sent, made harmless and given their ``@device``. Pure.

Owns what of a row is believed: a wrong member is unknown, a row without a usable ID is left out, and whatever a name
says, it belongs to the device that was asked. Does not own how rows are shown (``libintercom.list_texts``).
"""

from __future__ import annotations

from libintercom.roster import show_row
from libintercom.targets import display_targets
from libintercom.wire.messages import Row
from libintercom.wire.values import is_bool, is_count, is_hex64, is_number, is_string, scrub_label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Shown = dict[str, Any]

# More mains than one person runs; the rest is counted.
MAX_ROWS = 5_000
# An ID as brokers accept it has 80 characters at most; a label has 1 KiB.
_MAX_ID_CHARS = 200
_MAX_LABEL_CHARS = 1_024
_UNKNOWN = "unknown"
# Sorts behind every hexadecimal project ID, as in a local list.
_NO_PROJECT = "~"


def read_rows(sessions: object, device: str) -> tuple[list[Shown], int]:
    """The rows of a list's answer in the order of a local list, and how many could not be used."""
    listed = sessions if isinstance(sessions, list) else []
    rows = [row for row in map(_read_row, listed[:MAX_ROWS]) if row is not None]
    distinct = sorted({row.id: row for row in rows}.values(), key=_order)
    targets = display_targets((row.id, row.name) for row in distinct)
    shown = [_place(show_row(row, targets[row.id]), device) for row in distinct]
    return shown, len(listed) - len(distinct)


def keep_rows(rows: list[Shown], to: str, device: str) -> list[Shown]:
    """The rows whose name or ID contains a text, ignoring case; the text may keep its ``@device`` ending."""
    ending = f"@{device.lower()}"
    text = to.lower()
    wanted = text.removesuffix(ending)
    return [row for row in rows if any(wanted in own.lower()[: -len(ending)] for own in (row["id"], row["name"] or ""))]


def _read_row(told: object) -> Row | None:
    if not isinstance(told, dict):
        return None
    peer_id = told.get("id")
    if not isinstance(peer_id, str) or not 0 < len(peer_id) <= _MAX_ID_CHARS or scrub_label(peer_id) != peer_id:
        return None
    parts: dict[str, Any] = {
        "name": _label(told.get("name")),
        "status": _label(told.get("status")),
        "project_id": _checked(told.get("projectId"), is_hex64),
        "accepts_asks": _checked(told.get("acceptsAsks"), is_bool),
        "pending_asks": _checked(told.get("pendingAsks"), is_count),
        "last_seen": _checked(told.get("lastSeen"), is_number),
        "last_intercom_activity": _checked(told.get("lastIntercomActivity"), is_number),
    }
    given = {name: value for name, value in parts.items() if value is not None}
    cwd, model = _label(told.get("cwd")) or _UNKNOWN, _label(told.get("model")) or _UNKNOWN
    return Row(id=peer_id, cwd=cwd, model=model, **given)


def _label(value: object) -> str | None:
    return scrub_label(value[:_MAX_LABEL_CHARS]) if isinstance(value, str) and is_string(value) and value else None


def _checked(value: object, accepts: Any) -> Any:
    return value if accepts(value) else None


def _place(shown: Shown, device: str) -> Shown:
    """The same row as one of the device: its name, ID and target end in ``@device`` whatever stood there."""
    placed = {**shown, "id": f"{shown['id']}@{device}", "target": f"{shown['target']}@{device}", "device": device}
    placed["name"] = f"{shown['name']}@{device}" if shown["name"] else None
    return placed


def _order(row: Row) -> tuple[str, str, str]:
    return (row.project_id or _NO_PROJECT, (row.name or "").lower(), row.id)
