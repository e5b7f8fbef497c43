"""What a program says about itself when it joins: name, place, model, lineage, what it accepts.

Owns the description and the registration made from it. Does not own finding a native ID or lineage
(``identity``) nor the connection (``calls``).
"""

from __future__ import annotations

from libintercom.errors import InvalidFrame, InvalidProfile
from libintercom.wire.messages import NATIVE, Host, Registration, admit_labels, nested
from libintercom.wire.record import ABSENT, Record, dump_record, nullable, optional, parse_record, required
from libintercom.wire.requests import Presence, Register
from libintercom.wire.values import BOOL, COUNT, HEX64, LABEL, NUMBER, STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# What a session says as its model when no language model stands behind it; the wire requires a label.
NO_MODEL = "none"
# The version of our extensions that this library speaks (wire.md 9.1).
EXT = 1


class Profile(Record):
    """A session's own description. ``replace(...)`` makes a changed copy.

    ``requested_id``: the wanted peer ID, honoured when free. A main has its own native ID as
    ``root_session_id``, a child its main's as root and parent. ``observer``: join without a row, to look only.
    ``guarded_delivery`` and ``receipt_reads`` are to be negotiated; who takes guarded messages checks the guard of each
    again before it admits it. ``application_guard``: the consent others name, with guarded delivery. ``serves_reads``:
    reads of this session come as ``ReadAsked``; without it they are answered ``unsupported``.
    """

    cwd: str = required(STRING)
    model: str = required(STRING)
    name: str | None = optional(STRING, default=None)
    requested_id: str | None = optional(STRING, default=None)
    root_session_id: str | None = optional(STRING, default=None)
    parent_session_id: str | None = optional(STRING, default=None)
    incarnation: str | None = optional(STRING, default=None)
    project_id: str | None = optional(HEX64, default=None)
    status: str | None = optional(STRING, default=None)
    accepts_asks: bool | None = optional(BOOL, default=None)
    pending_asks: int | None = optional(COUNT, default=None)
    last_intercom_activity: float | None = optional(NUMBER, default=None)
    host: Host | None = optional(nested(Host), default=None)
    observer: bool | None = optional(BOOL, default=None)
    guarded_delivery: bool | None = optional(BOOL, default=None)
    receipt_reads: bool | None = optional(BOOL, default=None)
    serves_reads: bool | None = optional(BOOL, default=None)
    application_guard: str | None = nullable(LABEL, default=ABSENT)


# Members of a profile that travel beside the registration, not in it.
_BESIDE = ("requestedId", "observer", "guardedDelivery", "receiptReads", "servesReads")
# Those of them that are 1 in the ``register`` frame.
_ASKED = ("observer", "guardedDelivery", "receiptReads")


def profile_from_environment(
    *,
    name: str | None = None,
    model: str = NO_MODEL,
    cwd: str | None = None,
    native_id: str | None = None,
    environ: Mapping[str, str] | None = None,
    **parts: Any,
) -> Profile:
    """The profile of this program: its lineage, peer ID, name, directory and project; ``parts`` are further members.

    Inside a child's shell this is that child's lineage. ``native_id`` defaults to ``INTERCOM_NATIVE_SESSION_ID``,
    else to a fresh one; each call is an incarnation of its own.

    Raises:
        InvalidLineage: the lineage variables form no identity; such a program must not join.
        InvalidConfiguration: another variable cannot be used.
    """
    # Only programs that take their identity from the environment need its rules.
    import os

    from libintercom import identity

    native = identity.find_native_id(native_id, environ)
    lineage = identity.find_lineage(native, environ)
    place = cwd or os.getcwd()
    told = {
        "name": name or identity.find_name(environ) or identity.unnamed_alias(native),
        "requested_id": identity.peer_id(native),
        "root_session_id": lineage.root,
        "incarnation": identity.make_uuid(),
        "project_id": identity.project_id(place),
        **({"parent_session_id": lineage.parent} if lineage.is_child else {}),
        **parts,
    }
    return Profile(cwd=place, model=model, **told)


def register_request(profile: Profile) -> Register:
    """The ``register`` frame of a profile, with our extensions asked for.

    Raises:
        InvalidProfile: a value breaks its rule; the broker would drop the connection without a word.
    """
    dumped = dump_record(profile)
    beside = {name: dumped.pop(name) for name in _BESIDE if name in dumped}
    asked: dict[str, Any] = {"session": dumped, "ext": EXT}
    if "requestedId" in beside:
        asked["requestedId"] = beside["requestedId"]
    asked.update((name, 1) for name in _ASKED if beside.get(name))
    if dumped.get("applicationGuard") is None:
        # Withdrawn, which a registration says by its absence.
        dumped.pop("applicationGuard", None)
    elif not profile.guarded_delivery:
        raise InvalidProfile("application_guard needs guarded_delivery")
    request: Register = _checked(Register, asked)
    _check_labels(request.session)
    return request


def presence_request(changes: Mapping[str, Any]) -> Presence:
    """The ``presence`` frame of some changes, by attribute name.

    Raises:
        InvalidProfile: a member that presence cannot change, or a value that breaks its rule.
    """
    names = {field.name: field.wire_name for field in Presence.fields}
    fixed = sorted(changes.keys() - names.keys())
    if fixed:
        raise InvalidProfile(f"{', '.join(fixed)} cannot change while connected")
    request: Presence = _checked(Presence, {names[name]: value for name, value in changes.items()})
    _check_labels(request)
    return request


def _checked(kind: Any, value: dict[str, Any]) -> Any:
    try:
        return parse_record(kind, value)
    except InvalidFrame as error:
        raise InvalidProfile(error.reason) from None


def _check_labels(record: Registration | Presence) -> None:
    try:
        admit_labels(record, NATIVE)
    except InvalidFrame as error:
        raise InvalidProfile(error.reason) from None
