"""The JSON shapes that scripts rely on, one function each; members are only ever added.

Owns the translation of the library's values into them. Does not own printing (``output``). A peer's text is given
exactly as it came: JSON escapes it.
"""

from __future__ import annotations

from libintercom.wire.record import dump_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from libintercom.devices.results import DeviceCheck, DeviceListing, DeviceResult
    from libintercom.inbound import Inbound
    from libintercom.outcomes import Listing, Outcome
    from libintercom.wire.messages import BrokerHello
    from libintercom.wire.reads import Page


def outcome(told: Outcome) -> dict[str, Any]:
    """``outcome, messageId, code?, reason?, accepted?, delivered?, deliveryUnknown`` and a refusal's details."""
    return dump_record(told)


def reply(inbound: Inbound) -> dict[str, Any]:
    """``text, from, id, fromId, attachments?``: ``from`` is what to call the sender, ``id`` the reply's message ID."""
    content = dump_record(inbound.message.content)
    return {
        **content,
        "from": inbound.row.name or inbound.row.id,
        "id": inbound.message.id,
        "fromId": inbound.row.id,
    }


def pending(view: Mapping[str, Any]) -> dict[str, Any]:
    """``messageId, from, text, receivedAtMs``: a question that waits for a reply; ``from`` is the asker's row."""
    return {name: view[name] for name in ("messageId", "from", "text", "receivedAtMs")}


def page(first: Page, last: Page, text: str) -> dict[str, Any]:
    """``entryId, offset, text, nextOffset, total``: what was read of a response; ``nextOffset`` is null at its end."""
    return {
        "entryId": first.entry_id,
        "offset": first.offset,
        "text": text,
        "nextOffset": last.next_offset,
        "total": first.total,
    }


def listing(told: Listing) -> dict[str, Any]:
    """``sessions, omitted``: rows as in ``list --json``, in the broker's order."""
    from libintercom.roster import show_row  # imported here: only a joined session lists in this shape
    from libintercom.targets import display_targets

    targets = display_targets((row.id, row.name) for row in told.rows)
    return {"sessions": [show_row(row, targets[row.id]) for row in told.rows], "omitted": told.omitted}


def broker(hello: BrokerHello | None) -> dict[str, Any] | None:
    """``program, version, pid, incarnation, startIdentity?, starter?``; None for a broker that does not say."""
    return None if hello is None else dump_record(hello)


def device_listing(told: DeviceListing) -> dict[str, Any]:
    """``device, listed, code?, reason?, sessions, total, omitted, nowMs``: rows as in ``list --json``, with @device."""
    why = {} if told.is_listed else {"code": told.code, "reason": told.reason}
    return {
        "device": told.device,
        "listed": told.is_listed,
        **why,
        "sessions": told.rows,
        "total": told.total,
        "omitted": told.omitted,
        "nowMs": int(told.now_ms),
    }


def device_result(told: DeviceResult) -> dict[str, Any]:
    """The members of an outcome, ``device, target, sentence?, reply?, endedBy?``: a reply as from a local ask."""
    shown = {**outcome(told.outcome), "device": told.device, "target": told.target}
    if told.sentence:
        shown["sentence"] = told.sentence
    if told.ended_by:
        shown["endedBy"] = told.ended_by
    if told.reply is not None:
        shown["reply"] = {**told.reply["content"], "from": told.target, "id": told.reply.get("id")}
    return shown


def device_check(told: DeviceCheck) -> dict[str, Any]:
    """``device, reached, command, code?, reason?, check?``: ``command`` is whose command answers there."""
    command = {"1": "intercom-remote", "node": "node"}.get(told.marker)
    why = {"code": told.code, "reason": told.reason} if told.code else {}
    return {"device": told.device, "reached": not told.code, "command": command, **why, "check": told.found}
