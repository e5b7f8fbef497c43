"""One call of the tool, read and checked. Pure.

Owns what a call may hold and what is said about a mistake. Does not own the table of parameters (``tool``) nor what
the broker makes of a message.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from intercom_adapters.mcp.tool import ACTIONS, ASK, NAME, PARAMETERS, REPLY, SEND
from libintercom.printable import make_line

if TYPE_CHECKING:
    from collections.abc import Mapping

# The actions whose failures say what became of a message.
MESSAGES = (SEND, ASK, REPLY)
# JSON type -> what Python reads it as, and how a sentence calls it.
_TYPES: dict[str, tuple[type, str]] = {
    "string": (str, "a string"),
    "boolean": (bool, "true or false"),
    "integer": (int, "a whole number"),
    "array": (list, "a list"),
}
# A wrong value is shown, not repeated in full.
_SHOWN_CHARS = 80
# Parameters that are options of a message, by the names that the library gives them.
_MESSAGE_OPTIONS = {
    "attachments": "attachments",
    "delivery": "delivery",
    "queueMode": "queue_mode",
    "threadId": "thread_id",
}


class BadCall(ValueError):
    """A call that nothing was done about; ``action`` is "" where none could be read."""

    def __init__(self, action: str, reason: str) -> None:
        super().__init__(reason)
        self.action, self.reason = action, reason


@dataclass(frozen=True, kw_only=True)
class Call:
    """What is to be done. ``options`` go with a message, named as the library names them."""

    action: str
    to: str = ""
    message: str | None = None
    reply_to: str = ""
    children: bool = False
    scope: str = ""
    device: str = ""
    entry_id: str | None = None
    offset: int = 0
    options: dict[str, Any] = field(default_factory=dict)


def read_call(arguments: Mapping[str, Any]) -> Call:
    """The call that these arguments make.

    Models fill what they leave out with null or an empty text: both mean "not given", except an empty ``message``.

    Raises:
        BadCall: an unknown action or parameter, one of the wrong type, or a missing one; the reason says what to give.

    """
    given = {name: value for name, value in arguments.items() if value is not None}
    action = given.pop("action", None)
    if not isinstance(action, str) or action not in ACTIONS:
        found = "is missing" if action is None else f"{_show(action)} is not known"
        raise BadCall("", f"action {found}; give one of {', '.join(ACTIONS)}.")
    _check(action, given)
    told = {name: value for name, value in given.items() if value not in ("", False, []) or name == "message"}
    _check_members(action, told)
    return Call(
        action=action,
        to=told.get("to", ""),
        message=told.get("message"),
        reply_to=told.get("replyTo", ""),
        children=told.get("children", False),
        scope=told.get("scope", ""),
        device=told.get("device", ""),
        entry_id=told.get("entryId"),
        offset=told.get("offset", 0),
        options={keyword: told[name] for name, keyword in _MESSAGE_OPTIONS.items() if name in told},
    )


def _check(action: str, given: Mapping[str, Any]) -> None:
    """Every parameter is known and has its type."""
    for name, value in given.items():
        schema = PARAMETERS.get(name)
        if schema is None:
            raise BadCall(action, f"{NAME} has no parameter {_show(name)}; it has {', '.join(PARAMETERS)}.")
        kind, called = _TYPES[schema["type"]]
        # A truth value is an integer to Python and none to JSON.
        is_of_kind = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not is_of_kind or value < schema.get("minimum", value):
            raise BadCall(action, f"{name} is not {called}{' from 0 on' if 'minimum' in schema else ''}.")
        if value != "" and value not in schema.get("enum", (value,)):
            raise BadCall(action, f"{name} is {_show(value)}; give one of {', '.join(schema['enum'])}.")


def _check_members(action: str, told: Mapping[str, Any]) -> None:
    """The action has what it needs and takes what it has."""
    needed, allowed = ACTIONS[action]
    for name in needed:
        if name not in told:
            raise BadCall(action, f"{action} needs {name}.")
    for name in told:
        # A message without a word about it is what every model adds by itself.
        if name not in (*needed, *allowed) and told[name] not in ("", 0):
            takes = ", ".join((*needed, *allowed)) or "nothing else"
            raise BadCall(action, f"{action} takes no {name}; it takes {takes}.")


def _show(value: object) -> str:
    text = make_line(str(value))
    return f'"{text[:_SHOWN_CHARS]}…"' if len(text) > _SHOWN_CHARS else f'"{text}"'
