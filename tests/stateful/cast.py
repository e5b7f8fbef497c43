"""Who takes part: two mains and a child of each, some with extensions and some without.

Owns names, ids and lineage, and who may see whom by the rule in words: the same root, or both mains. The two children
bear one name, so that each is what the other group must not notice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from libintercom.wire.messages import Registration
from libintercom.wire.requests import Register


@dataclass(frozen=True)
class Part:
    """One session of the play; ``key`` is what the actions call it."""

    key: str
    peer_id: str
    name: str
    root: str
    is_child: bool
    has_ext: bool
    # Whether it negotiated reads of receipts and guarded delivery.
    has_all: bool

    def may_see(self, other: Part) -> bool:
        return self.root == other.root or not (self.is_child or other.is_child)


PARTS = {
    part.key: part
    for part in (
        Part("A", "main-of-a", "Ann", "main-of-a", is_child=False, has_ext=True, has_all=True),
        Part("B", "main-of-b", "Bea", "main-of-b", is_child=False, has_ext=False, has_all=True),
        Part("a", "child-of-a", "kid", "main-of-a", is_child=True, has_ext=False, has_all=False),
        Part("b", "child-of-b", "kid", "main-of-b", is_child=True, has_ext=True, has_all=False),
    )
}
# The context that every part is in, and the consent it joins with.
INCARNATION, CONSENT = "i1", "v1"
BY_ID = {part.peer_id: part for part in PARTS.values()}


@cache
def registration(key: str) -> Register:
    """What a part says to join."""
    part = PARTS[key]
    session = Registration(
        cwd="/w",
        model="m",
        name=part.name,
        # As if there had been activity: whether there was is public, and no matter of this play.
        last_intercom_activity=1.0,
        root_session_id=part.root,
        incarnation=INCARNATION,
        application_guard=CONSENT,
        **({"parent_session_id": part.root} if part.is_child else {}),
    )
    asked = {"ext": 1} if part.has_ext else {}
    if part.has_all:
        asked.update(guarded_delivery=1, receipt_reads=1)
    return Register(session=session, requested_id=part.peer_id, **asked)
