"""Whom a target means, as far as this side has to know before it sends.

Owns looking a target up in a list: for an ask (whose answer and whose leaving count), and for every send through
an old broker, which neither trims, nor knows ID prefixes, nor refuses a message to oneself (wire.md 5.2, 6.1).
Does not own resolution itself (``targets``); a broker of ours resolves a target as it stands.
"""

from __future__ import annotations

from libintercom.errors import Disconnected, IntercomError, TimedOut
from libintercom.flows import LIST_TIMEOUT_S, list_sessions
from libintercom.targets import AMBIGUOUS, FOUND, SELF, TOO_SHORT, Index, display_targets, resolve
from libintercom.wire.messages import Candidate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.calls import Exchange
    from libintercom.flows import Flow
    from libintercom.targets import Resolution
    from libintercom.wire.messages import Row


class WrongTarget(IntercomError):
    """A target that is certainly no good; nothing was sent. ``code`` is from ``wire.codes``."""

    def __init__(self, code: str, reason: str, candidates: tuple[Candidate, ...] = ()) -> None:
        super().__init__(code, reason, candidates)
        self.code, self.reason, self.candidates = code, reason, candidates

    def __str__(self) -> str:
        return self.reason


class Aim:
    """What to put into ``to``, and the recipient's row when it is known."""

    __slots__ = ("row", "to")

    def __init__(self, to: str, row: Row | None = None) -> None:
        self.to, self.row = to, row


def aim_send(exchange: Exchange, to: str, timeout_s: float = LIST_TIMEOUT_S) -> Flow[Aim]:
    """A send's target: as it stands through a broker of ours, looked up through an old one.

    Raises:
        WrongTarget: only through an old broker, where nobody else would refuse it.
    """
    if exchange.has_ext or not exchange.is_joined:
        return Aim(to)
    return (yield from aim_ask(exchange, to, timeout_s))


def aim_ask(exchange: Exchange, to: str, timeout_s: float = LIST_TIMEOUT_S) -> Flow[Aim]:
    """An ask's target, looked up; as it stands when it is unknown here or no list came.

    Raises:
        WrongTarget: only through an old broker.
    """
    try:
        listing = yield from list_sessions(exchange, timeout_s)
    except (TimedOut, Disconnected):
        return Aim(to)
    rows = {row.id: row for row in listing.rows}
    index = Index()
    for row in rows.values():
        index.add(row.id, row.name)
    found = resolve(to, (index,), exchange.session_id)
    if found.kind == FOUND:
        return Aim(found.ids[0], rows[found.ids[0]])
    if not exchange.has_ext:
        _refuse_wrong(to, found, rows)
    return Aim(to)


def _refuse_wrong(to: str, found: Resolution, rows: dict[str, Row]) -> None:
    if found.kind == SELF:
        raise WrongTarget("self_target", f'Message to "{to}": that is this session; name another one')
    if found.kind == TOO_SHORT:
        raise WrongTarget("too_short", f'Target "{to}" is too short')
    if found.kind == AMBIGUOUS:
        targets = display_targets((row.id, row.name) for row in rows.values())
        candidates = tuple(_candidate(rows[peer_id], targets[peer_id]) for peer_id in found.ids)
        raise WrongTarget("ambiguous", f'Target "{to}" matches multiple sessions', candidates)


def _candidate(row: Row, target: str) -> Candidate:
    named = {"name": row.name} if row.name is not None else {}
    return Candidate(id=row.id, target=target, cwd=row.cwd, **named)
