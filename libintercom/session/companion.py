"""The supported client of a companion program that is no session of a model (seeds, "Supported non-model client").

Owns what such a client may do: one connection, guarded sends to one exact main, reads that wake nobody. It starts no
broker, never connects or sends again by itself, keeps no ledger, and takes no messages. Does not own the protocol
(``libintercom.aio``) nor whose consent a guard names.
"""

from __future__ import annotations

import asyncio

from libintercom.aio import AsyncClient
from libintercom.errors import Disconnected, InvalidFrame, InvalidGuard, InvalidProfile, OutcomeUnknown, Refused
from libintercom.flows import LIST_TIMEOUT_S, SEND_TIMEOUT_S
from libintercom.inbound import ConnectionEnded
from libintercom.outcomes import NOT_CONNECTED, UNKNOWN
from libintercom.profile import Profile
from libintercom.sending import Timeouts
from libintercom.session.errors import SpawnNotAllowed
from libintercom.wire.guards import Guard
from libintercom.wire.reads import MAX_PAGE_UNITS
from libintercom.wire.record import Record, dump_record, parse_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Self, Union

    from libintercom.errors import IntercomError
    from libintercom.outcomes import Outcome
    from libintercom.wire.guards import ReplyHint
    from libintercom.wire.messages import Row
    from libintercom.wire.reads import Page

    Session = Union[Profile, Mapping[str, Any]]

SEND_TIMEOUT_MS = int(SEND_TIMEOUT_S * 1000)
LIST_TIMEOUT_MS = int(LIST_TIMEOUT_S * 1000)
_GUARD_MEMBERS = frozenset(field.wire_name for field in Guard.fields)


async def connect_intercom(
    *,
    spawn: bool,
    session: Session,
    send_timeout_ms: int = SEND_TIMEOUT_MS,
    list_timeout_ms: int = LIST_TIMEOUT_MS,
    on_error: Callable[[IntercomError], object] | None = None,
) -> Companion:
    """A connected companion in the normal namespace, or the one that ``PI_INTERCOM_RUNTIME_DIR`` names.

    ``session``: a ``Profile``, or an object with its wire names (``name``, ``cwd``, ``model``, ``rootSessionId``,
    ``incarnation``, ``requestedId``). ``on_error`` hears once when the connection breaks off; it is called on the loop
    and must not raise.

    Raises:
        SpawnNotAllowed: ``spawn`` is not literally False: a companion never starts a broker.
        InvalidProfile: the session's description breaks a rule.
        NotRunning and the other errors of ``AsyncClient.connect``: no connection.
    """
    if spawn is not False:
        raise SpawnNotAllowed
    timeouts = Timeouts(send_s=send_timeout_ms / 1000, list_s=list_timeout_ms / 1000)
    client = await AsyncClient.join(_profile(session), spawn=False, timeouts=timeouts)
    return Companion(client, on_error)


class Companion:
    """A connected companion; by ``connect_intercom``. Outstanding requests raise when the connection ends."""

    def __init__(self, client: AsyncClient, on_error: Callable[[IntercomError], object] | None) -> None:
        self._client, self._on_error = client, on_error
        self._is_leaving = False
        self._reading = asyncio.get_running_loop().create_task(self._read())

    @property
    def session_id(self) -> str:
        """The current identity of this connection, the only one that counts; ``""`` once it is over."""
        return self._client.session_id if self.is_connected else ""

    @property
    def is_connected(self) -> bool:
        """About the transport alone, never about a recipient."""
        return self._client.is_connected

    async def list_sessions(self) -> tuple[Row, ...]:
        """The sessions this one may see. Raises Disconnected or TimedOut."""
        return (await self._client.list_sessions()).rows

    async def send(
        self,
        to: str,
        *,
        message_id: str,
        text: str,
        expects_reply: bool,
        delivery: str,
        guard: Guard | Mapping[str, str],
        reply_hint: ReplyHint | Mapping[str, str] | None = None,
    ) -> Outcome:
        """Send one guarded message; what is returned is the broker's acceptance, never a recipient's.

        ``message_id`` was recorded by the caller before; ``expects_reply`` is False; ``guard`` has all four members.

        Raises:
            InvalidGuard: a part is missing or wrong; nothing was sent.
            Refused: it certainly was not delivered; ``code`` says why (wire.md 9.3), or that this ID is on its way.
            OutcomeUnknown: it may have arrived. Reconcile with ``receipt``; never send it again under another ID.
            Disconnected: it certainly was not sent.
        """
        if expects_reply is not False:
            raise InvalidGuard("a companion's message says expects_reply=False")
        if not message_id or not delivery:
            raise InvalidGuard("a companion's message has an ID recorded before, and names its delivery")
        bound = _whole_guard(guard)
        hint = None if reply_hint is None else dict(_members(reply_hint))
        outcome = await self._client.send(
            to, text, message_id=message_id, expects_reply=False, delivery=delivery, guard=bound, reply_hint=hint
        )
        return _accepted(outcome)

    async def receipt(self, to: str, *, root_session_id: str, message_id: str) -> dict[str, Any]:
        """What the recipient's journal observed of a message. Raises ReadFailed, Disconnected or TimedOut."""
        return await self._client.receipt(to, root_session_id, message_id)

    async def last(
        self, to: str, *, entry_id: str | None = None, offset: int = 0, limit: int = MAX_PAGE_UNITS
    ) -> Page:
        """A page of a session's last response; keep ``entry_id`` and ``next_offset`` for the next one."""
        return await self._client.last(to, entry_id, offset, limit)

    async def disconnect(self) -> None:
        """Leave, close, and wait for the cleaning up. Connect again with a new ``connect_intercom``."""
        self._is_leaving = True
        await self._client.disconnect()
        await asyncio.wait([self._reading])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self.disconnect()

    async def _read(self) -> None:
        # Read, so that answers are never stuck behind messages that nobody takes here.
        async for event in self._client.events():
            if isinstance(event, ConnectionEnded) and not self._is_leaving and self._on_error is not None:
                self._on_error(Disconnected("this companion's session", event.reason))


def _profile(session: Session) -> Profile:
    try:
        profile = session if isinstance(session, Profile) else parse_record(Profile, dict(session))
    except InvalidFrame as error:
        raise InvalidProfile(error.reason) from None
    return profile.replace(guarded_delivery=True, receipt_reads=True)


def _members(given: Any) -> Mapping[str, str]:
    return dump_record(given) if isinstance(given, Record) else given


def _whole_guard(guard: Guard | Mapping[str, str]) -> dict[str, str]:
    members = dict(_members(guard))
    if members.keys() != _GUARD_MEMBERS:
        wrong = ", ".join(sorted(members.keys() ^ _GUARD_MEMBERS))
        raise InvalidGuard(f"a guard has exactly rootSessionId, peerId, incarnation and applicationGuard: see {wrong}")
    return members


def _accepted(outcome: Outcome) -> Outcome:
    if outcome.is_accepted:
        return outcome
    reason = outcome.reason or outcome.outcome
    if outcome.outcome == UNKNOWN:
        raise OutcomeUnknown(outcome.message_id, reason)
    if outcome.code == NOT_CONNECTED:
        raise Disconnected("send", reason)
    raise Refused(outcome.message_id, outcome.code or "", reason, outcome.retryable or False)
