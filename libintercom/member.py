"""What the blocking and the asyncio client have in common: one program's membership at one broker.

Owns the attributes of a client, the bounded retry before a registration and finding or starting a broker. Does not
own bytes (``client``, ``aio``) nor the protocol (``calls``, ``flows``).
"""

from __future__ import annotations

import os
import time

from libintercom.calls import Exchange
from libintercom.errors import NotRegistered, NotRunning
from libintercom.identity import make_uuid
from libintercom.sending import Timeouts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.paths import Places
    from libintercom.pending import PendingAsks
    from libintercom.profile import Profile
    from libintercom.wire.messages import BrokerHello

# A broker that leaves for idleness may take a connection and close it unanswered: a moment later another one can
# be started or found (ownership.md section 4). Each pause is drawn from these bounds, so starters spread out.
RETRIES = 3
_SHORTEST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 0.25
_BYTE_VALUES = 256


def retry_pauses_s() -> list[float]:
    """The pauses before each retry of a registration."""
    span = (_LONGEST_PAUSE_S - _SHORTEST_PAUSE_S) / _BYTE_VALUES
    return [_SHORTEST_PAUSE_S + span * drawn for drawn in os.urandom(RETRIES)]


def now_ms() -> int:
    """Wall time in Unix milliseconds, as the wire has it."""
    return int(time.time() * 1000)


def is_passing(error: Exception, *, may_start: bool) -> bool:
    """Whether a failed attempt to join is worth another: it broke off, or a broker just left and may be started."""
    if isinstance(error, NotRegistered):
        return error.is_retryable
    return isinstance(error, NotRunning) and may_start


class Member:
    """Base of both clients.

    ``path``: the broker's socket; by default the one of this user's namespace. ``timeouts``: how long to wait.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        path: str | None = None,
        timeouts: Timeouts | None = None,
        places: Places | None = None,
    ) -> None:
        self._places = places
        self._path = path or (places.socket if places is not None else "")
        self._may_start = False
        self._timeouts = timeouts or Timeouts()
        self._exchange = Exchange(profile, make_id=make_uuid, now_ms=now_ms)

    @property
    def profile(self) -> Profile:
        """What this program says about itself, presence changes included."""
        return self._exchange.profile

    @property
    def session_id(self) -> str:
        """The peer ID that the broker assigned; "" before joining and after leaving."""
        return self._exchange.session_id

    @property
    def broker(self) -> BrokerHello | None:
        """Who answers; None: an old broker that does not say."""
        return self._exchange.broker

    @property
    def has_ext(self) -> bool:
        """Whether the broker speaks our extensions; group rules are enforced only then."""
        return self._exchange.has_ext

    @property
    def is_observer(self) -> bool:
        """Whether the broker keeps this session out of sight; an old one lists it as an ordinary main."""
        return self._exchange.is_observer

    @property
    def has_guard(self) -> bool:
        """Whether guarded delivery was negotiated: guarded messages can be sent, and can come."""
        return self._exchange.has_guard

    @property
    def has_receipts(self) -> bool:
        """Whether reads of receipts were negotiated."""
        return self._exchange.has_receipts

    @property
    def is_connected(self) -> bool:
        """Whether this session is registered now, as far as this side knows."""
        return self._exchange.is_joined

    @property
    def pending(self) -> PendingAsks:
        """The questions that wait for this session's reply."""
        return self._exchange.pending

    def _find_path(self) -> str:
        if not self._path:
            self._path = self._find_places().socket
        return self._path

    def _find_places(self) -> Places:
        if self._places is None:
            # Only who does not say where the broker is needs the platform's rules.
            from libintercom.paths import find_places

            self._places = find_places()
        return self._places

    def _start_broker(self) -> None:
        # Starting is rare and its modules are heavy.
        from libintercom.starting import ensure_broker

        ensure_broker(self._find_places())

    def _begin_exchange(self) -> Exchange:
        """A fresh conversation for a fresh connection; unread events stay in their order."""
        old = self._exchange
        self._exchange = Exchange(old.profile, make_id=make_uuid, now_ms=now_ms, mailroom=old.mailroom)
        return self._exchange
