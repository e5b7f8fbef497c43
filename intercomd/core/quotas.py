"""How much each peer may send and have queued (wire.md 14.6), in messages and bytes.

Owns the budgets and their accounting. Does not own what happens when one is used up (``sends``, ``flow``).
Times are monotonic seconds.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from intercomd.core.limits import Limits
    from intercomd.core.roster import Connection

# How often a session may be offered similar names: each search costs milliseconds among 10,000 sessions.
NEAREST_BURST = 10
NEAREST_PER_S = 5.0
_MS_PER_S = 1000


@dataclass(slots=True)
class Excess:
    """A budget that is used up: which rule, how much was counted, its limit, when it opens again."""

    rule: str
    count: int
    limit: int
    retry_after_ms: int


class Bucket:
    """A token bucket; it may go below zero by the last thing taken, so that nothing is ever split."""

    __slots__ = ("_at", "_burst", "_level", "_rate_per_s")

    def __init__(self, burst: float, rate_per_s: float, now: float) -> None:
        self._burst, self._rate_per_s = burst, rate_per_s
        self._level, self._at = float(burst), now

    def level(self, now: float) -> float:
        """What may be taken now; negative when too much was."""
        return self.take(0, now)

    def take(self, amount: float, now: float) -> float:
        """Take, whatever is left; what is left then."""
        if now > self._at:
            self._level = min(self._burst, self._level + (now - self._at) * self._rate_per_s)
            self._at = now
        self._level -= amount
        return self._level

    def take_if_there(self, amount: float, now: float) -> bool:
        """Take all of it or nothing."""
        if now > self._at:
            self.take(0, now)
        if self._level < amount:
            return False
        self._level -= amount
        return True

    def wait_s(self, now: float, wanted: float) -> float:
        """How long until ``wanted`` may be taken."""
        return max(0.0, (wanted - self.level(now)) / self._rate_per_s)


class Allowance:
    """One connection's budgets."""

    __slots__ = ("input", "nearest", "sends")

    def __init__(self, limits: Limits, now: float) -> None:
        self.sends = Bucket(limits.send_burst, limits.sends_per_s, now)
        self.input = Bucket(limits.input_burst_bytes, limits.input_bytes_per_s, now)
        self.nearest = Bucket(NEAREST_BURST, NEAREST_PER_S, now)


class Window:
    """Messages of the last ``window_s`` seconds, counted by whole seconds and never too low.

    There is one for each pair that exchanged a message in that time, so it is kept small: eight bytes a second.
    """

    __slots__ = ("_counts", "total")

    def __init__(self) -> None:
        # A second, how many messages it had, the next second, and so on.
        self._counts = array("I")
        self.total = 0

    def slide(self, now: float, window_s: float) -> None:
        """Forget what is older than the window."""
        oldest, counts, gone = int(now - window_s), self._counts, 0
        while gone < len(counts) and counts[gone] < oldest:
            self.total -= counts[gone + 1]
            gone += 2
        if gone:
            del counts[:gone]

    def add(self, now: float, count: int = 1) -> bool:
        """Count messages; whether they are the first of their second."""
        second, counts = int(now), self._counts
        self.total += count
        if counts and counts[-2] == second:
            counts[-1] += count
            return False
        counts.append(second)
        counts.append(count)
        return True

    def opens_at(self, window_s: float) -> float:
        """When the oldest counted messages leave the window."""
        return self._counts[0] + 1 + window_s


class Quotas:
    """Every budget of the broker."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.held_bytes = 0
        self._allowances: dict[int, Allowance] = {}
        self._pairs: OrderedDict[tuple[str, str], Window] = OrderedDict()

    def allowance(self, conn: int, now: float) -> Allowance:
        """A connection's budgets, made at first use."""
        allowance = self._allowances.get(conn)
        if allowance is None:
            allowance = self._allowances[conn] = Allowance(self.limits, now)
        return allowance

    def forget(self, conn: int) -> None:
        """A connection is gone."""
        self._allowances.pop(conn, None)

    def charge_send(self, conn: int, now: float, size_bytes: int) -> Excess | None:
        """Charge one send to its sender, or say which rate it passed.

        Its frame of ``size_bytes`` was charged as input already. It is judged by what was left before it, so that
        the same frame passes once ``retry_after_ms`` are over.
        """
        allowance = self._allowances.get(conn) or self.allowance(conn, now)
        if allowance.sends.take(1, now) >= 0 and allowance.input.take(0, now) + size_bytes >= 0:
            return None
        # A refused send costs nothing of the rate it was refused by.
        allowance.sends.take(-1, now)
        return self._explain(allowance, now)

    def _explain(self, allowance: Allowance, now: float) -> Excess:
        limits = self.limits
        if allowance.sends.level(now) < 1:
            wait_s = allowance.sends.wait_s(now, 1)
            return Excess("sends", limits.send_burst, limits.send_burst, _wait_ms(wait_s))
        over = round(limits.input_burst_bytes - allowance.input.level(now))
        return Excess("bytes", over, limits.input_burst_bytes, _wait_ms(allowance.input.wait_s(now, 0)))

    def pair_excess(self, sender_id: str, recipient_id: str, now: float) -> Excess | None:
        """Say whether this ordered pair has used up its messages of the last minute."""
        limits = self.limits
        window = self._pairs.get((sender_id, recipient_id))
        # What has left the window is looked for only when it matters.
        if window is None or window.total < limits.pair_messages:
            return None
        window.slide(now, limits.pair_window_s)
        if window.total < limits.pair_messages:
            return None
        wait_s = window.opens_at(limits.pair_window_s) - now
        return Excess("pair", window.total, limits.pair_messages, _wait_ms(wait_s))

    def charge_sends(self, conn: int, now: float, count: int, size_bytes: int) -> bool:
        """Charge several sends and their input, if ``charge_send`` refuses none of them; else nothing is charged."""
        allowance = self._allowances.get(conn) or self.allowance(conn, now)
        if allowance.sends.take_if_there(count, now):
            if allowance.input.take_if_there(size_bytes, now):
                return True
            allowance.sends.take(-count, now)
        return False

    def room(self, sender_id: str, recipient_id: str, recipient: Connection) -> tuple[int, int]:
        """How many messages and bytes a pair may have accepted at once, without a look at what budgets allow beyond."""
        limits, window = self.limits, self._pairs.get((sender_id, recipient_id))
        count = limits.recipient_messages - recipient.held_messages
        of_pair = limits.pair_messages if window is None else limits.pair_messages - window.total
        of_all_bytes = limits.outbound_bytes - self.held_bytes
        size_bytes = limits.recipient_bytes - recipient.held_bytes
        return min(count, of_pair), min(size_bytes, of_all_bytes)

    def charge_pair(self, sender_id: str, recipient_id: str, now: float, count: int = 1) -> None:
        """Count accepted messages of a pair."""
        key = (sender_id, recipient_id)
        window = self._pairs.get(key)
        if window is None:
            self._drop_idle_pair(now)
            window = self._pairs[key] = Window()
        if window.add(now, count):
            window.slide(now, self.limits.pair_window_s)
            self._pairs.move_to_end(key)

    def _drop_idle_pair(self, now: float) -> None:
        # Two out for each one in, oldest use first: the memory follows the traffic of one window.
        for _round in range(2):
            if not self._pairs:
                return
            key, window = next(iter(self._pairs.items()))
            window.slide(now, self.limits.pair_window_s)
            if window.total:
                return
            del self._pairs[key]

    def recipient_excess(self, recipient: Connection, size_bytes: int) -> Excess | None:
        """Say whether one more message would pass what may wait for this recipient, or for all.

        A recipient with nothing waiting takes one message of any size.
        """
        limits = self.limits
        if recipient.held_messages >= limits.recipient_messages:
            return Excess("recipient_messages", recipient.held_messages, limits.recipient_messages, 0)
        if recipient.held_messages and recipient.held_bytes + size_bytes > limits.recipient_bytes:
            return Excess("recipient_bytes", recipient.held_bytes, limits.recipient_bytes, 0)
        if self.held_bytes + size_bytes > limits.outbound_bytes:
            return Excess("outbound_bytes", self.held_bytes, limits.outbound_bytes, 0)
        return None

    def hold(self, recipient: Connection, size_bytes: int, count: int = 1) -> None:
        """Deliveries wait for a recipient's socket."""
        recipient.held_messages += count
        recipient.held_bytes += size_bytes
        self.held_bytes += size_bytes

    def release(self, recipient: Connection, size_bytes: int) -> None:
        """A delivery waits no more."""
        recipient.held_messages -= 1
        recipient.held_bytes -= size_bytes
        self.held_bytes -= size_bytes


def _wait_ms(wait_s: float) -> int:
    # One more than needed: rounding must never tell a moment at which it is not open yet.
    return ceil(wait_s * _MS_PER_S) + 1
