"""What a refused or slowed session is told comes true: when a rate opens again, how late a list may be, who was last.

Owns one small trial, on a broker whose limits are so low that each is met at once.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.support import sayings as say
from tests.trials.load.peers import Peer, Peers
from tests.trials.load.refusals import untruth
from tests.trials.load.stage import Stage, stage

if TYPE_CHECKING:
    from tests.trials.load.report import Report
    from tests.trials.load.scale import Scale

# So low that a machine on which a message takes a tenth of a second meets them too.
_LIMITS = {
    "send_burst": 40,
    "sends_per_s": 10.0,
    "input_burst_bytes": 60_000,
    "input_bytes_per_s": 60_000.0,
    "pair_messages": 10,
    "pair_window_s": 1.0,
}
# Rule -> the size of the message that meets it first, and to how many sessions they go in turns.
_WAYS = {"sends": (10, 8), "bytes": (9_000, 8), "pair": (10, 1)}
# wire.md 14.6: a list over the budget is answered so late at most. A busy machine may need a moment to say it.
_LIST_S, _SAYING_S = 2.0, 1.0
_RECIPIENTS = 8
_MS_PER_S = 1000


class Sender:
    """One session that sends until it is refused."""

    def __init__(self, at: Stage, peers: Peers, rule: str) -> None:
        self._peers, self._report, self._rule = peers, at.report, rule
        self._size, self._ways = _WAYS[rule]
        self.words: list[say.Object] = []
        (self.peer,) = peers.join(at.path, [say.register(f"sender {rule}", ext=1)], on_frame=self._hear)
        self._count = 0

    def send(self) -> say.Object:
        """One message and its word."""
        self._count += 1
        known = len(self.words)
        to = f"promised-{self._count % self._ways}"
        self.peer.say(say.send(to, f"{self._rule}-{self._count}", "x" * self._size))
        self._peers.turn_until(lambda: len(self.words) > known, "a word")
        return self.words[-1]

    def send_until_refused(self) -> say.Object:
        while (word := self.send())["type"] != "delivery_failed":
            assert self._count < 1_000, f"{self._rule}: nothing was refused"
        return word

    def judge(self) -> None:
        """Refused by the rule that it met, truthfully; and served when the told time is over."""
        refusal = self.send_until_refused()
        wrong = untruth(refusal)
        self._report.expect(not wrong, f"a sender was told an untruth: {wrong}")
        self._report.expect(refusal.get("rule") == self._rule, f"{self._rule}: refused by {refusal.get('rule')}")
        wait_s = refusal["retryAfterMs"] / _MS_PER_S
        said = f"{refusal['count']} of {refusal['limit']}, again in {wait_s:.3f} s"
        _turn_for(self._peers, wait_s)
        word = self.send()
        self._report.say(f"{self._rule}: refused after {self._count - 2} messages ({said}); then {word['type']}")
        self._report.expect(word["type"] != "delivery_failed", f"{self._rule}: refused after the told time: {word}")

    def _hear(self, _peer: Peer, value: say.Object) -> None:
        if value["type"].startswith("deliver"):
            self.words.append(value)


def keep_promises(report: Report, _scale: Scale) -> None:
    """Meet each limit, wait as long as was told, and be served."""
    with stage(report, **_LIMITS) as at, Peers() as peers:
        recipients = [say.register(f"r{number}", id=f"promised-{number}", ext=1) for number in range(_RECIPIENTS)]
        peers.join(at.path, recipients)
        for rule in _WAYS:
            Sender(at, peers, rule).judge()
            if report.violations:
                # What was promised is not kept; the rest would only wait for it.
                return
        _judge_late(at, peers)
        at.judge_balance()
        at.judge_log()


def _judge_late(at: Stage, peers: Peers) -> None:
    """Over its budget of bytes a session gets its list late, and the last of its presences counts."""
    (greedy,) = peers.join(at.path, [say.register("late", id="late-session", ext=1)])
    rows: list[say.Object] = []
    (looker,) = peers.join(at.path, [say.register("looker", ext=1)], on_frame=lambda _peer, value: rows.append(value))
    greedy.say({"type": "extension_publish", "payload": "x" * 100_000})
    for number in range(30):
        greedy.say(say.presence(status=f"tool:{number}"))
    began_s = time.monotonic()
    greedy.say(say.list_sessions("late"))
    peers.turn_until(lambda: greedy.heard["sessions"], "a late list")
    took_s = time.monotonic() - began_s
    at.report.time("a list over the budget, late by", took_s, "s", bar=_LIST_S + _SAYING_S)

    def has_settled() -> bool:
        looker.say(say.list_sessions("look"))
        peers.turn()
        seen = [row for value in rows if value["type"] == "sessions" for row in value["sessions"]]
        return any(row["id"] == "late-session" and row["status"] == "tool:29" for row in seen)

    peers.turn_until(has_settled, "the last presence to be seen")
    took_s = time.monotonic() - began_s
    at.report.time("the last of many presences, seen after", took_s, "s", bar=2 * (_LIST_S + _SAYING_S))


def _turn_for(peers: Peers, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left_s := end - time.monotonic()) > 0:
        peers.turn(left_s)
