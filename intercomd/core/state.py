"""Everything the core knows, in one place, for the parts that decide on it.

Owns nothing but the assembly: each part has its own module and its own rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomd.core.asks import Asks
from intercomd.core.counters import Counters
from intercomd.core.deadlines import Deadlines
from intercomd.core.dedupe import Dedupe
from intercomd.core.letters import Letters
from intercomd.core.quotas import Quotas
from intercomd.core.roster import Roster
from intercomd.core.stage import Stage
from intercomd.core.storing import Storing
from intercomd.core.turn import Turn

if TYPE_CHECKING:
    from intercomd.core.limits import Limits
    from libintercom.wire.messages import BrokerHello


class State:
    """One broker's state."""

    def __init__(self, limits: Limits, hello: BrokerHello, started_at_ms: int, now: float) -> None:
        self.limits, self.hello = limits, hello
        self.turn = Turn(now, started_at_ms)
        self.deadlines = Deadlines()
        self.roster = Roster()
        self.quotas = Quotas(limits)
        self.counters = Counters()
        self.dedupe = Dedupe(limits)
        self.asks = Asks()
        self.stage = Stage(limits)
        self.storing = Storing(self.turn, hello.incarnation)
        self.letters = Letters(limits, self.roster, self.turn, self.storing, hello.incarnation)
