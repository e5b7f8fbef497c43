"""Becoming the owner, under the start lock: claim, verdict, life, socket, in this order.

Owns the order of the steps and when one of them must not be taken. Does not own taking the start lock
(``acquisition``), binding (the listener edge hands it in) nor what happens afterwards (``holding``).

Other programs of the lineage take no start lock. So each step that replaces something looks once more whether what was
judged is still what stands there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomd.edges.ownership.claim import publish_claim
from intercomd.edges.ownership.life import begin_life
from intercomd.edges.ownership.outcomes import Outcome, already, claimed, failed, uncertain
from libintercom.endpoint import ABSENT, BUSY, CONNECTED, REFUSED, attempt
from libintercom.ownership import verdict
from libintercom.ownership.inspection import inspect
from libintercom.ownership.temporaries import remove_if_same, sweep
from libintercom.paths import CLAIM_NAME, RECORD_NAME, SOCKET_NAME

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Protocol

    from intercomd.edges.ownership.claim import Claim
    from intercomd.edges.ownership.life import Life
    from libintercom.endpoint import Attempt
    from libintercom.ownership.directory import RuntimeDirectory
    from libintercom.ownership.inspection import Finding
    from libintercom.ownership.locks import FileLock
    from libintercom.ownership.records import Mark
    from libintercom.ownership.verdict import Ours
    from libintercom.paths import Places

    class Bound(Protocol):
        """A socket that listens at a temporary name in the directory."""

        listening: socket.socket
        mark: Mark

        def publish(self) -> None:
            """Give it the canonical name, over a dead one's."""

        def abandon(self) -> None:
            """Close it and take its names away."""

    Prepare = Callable[[RuntimeDirectory], Bound]

# Another program may publish its claim each time we took a dead one away; more often is no coincidence.
_CLAIM_LIMIT = 3


class Start:
    """One attempt to become the owner. Whoever makes it holds the start lock ``guard`` until the attempt is over."""

    def __init__(
        self, places: Places, directory: RuntimeDirectory, guard: FileLock, ours: Ours, prepare: Prepare
    ) -> None:
        self.places, self.directory, self.guard, self.ours, self.prepare = places, directory, guard, ours, prepare

    def publish(self, own: Mark | None = None) -> tuple[Life, Bound] | Outcome:
        """Publish life and socket; ``own`` is our record of before, which may be replaced though it is live.

        Raises:
            OSError: a file cannot be made; everything of ours was taken away again.

        """
        seen = self._look()
        taken = judge_endpoint(seen)
        if taken is not None:
            return taken
        sweep(self.directory)
        claim = self._claim(seen.outcome)
        if isinstance(claim, Outcome):
            return claim
        with claim:
            return self._publish_under(claim, own)

    def _claim(self, endpoint: str) -> Claim | Outcome:
        for _attempt in range(_CLAIM_LIMIT):
            finding = inspect(self.directory, CLAIM_NAME, self.ours, endpoint)
            if finding.kind in (verdict.LIVE, verdict.UNCERTAIN):
                return claimed(finding.reason, is_doubtful=finding.kind == verdict.UNCERTAIN)
            if finding.mark is not None:
                remove_if_same(self.directory, CLAIM_NAME, finding.mark)
            claim = publish_claim(self.directory, self.ours)
            if claim is not None:
                return claim
        return claimed(f"{CLAIM_NAME}: another program publishes its claims faster")

    def _publish_under(self, claim: Claim, own: Mark | None) -> tuple[Life, Bound] | Outcome:
        seen = self._look()
        finding = inspect(self.directory, RECORD_NAME, self.ours, seen.outcome)
        taken = judge_endpoint(seen) or _judge_record(finding, own)
        if taken is not None:
            return taken
        former = self.directory.mark(SOCKET_NAME)
        life = begin_life(self.directory, self.ours)
        try:
            bound = self._bind(claim, finding, former, life)
        except BaseException:
            life.abandon()
            raise
        if isinstance(bound, Outcome):
            life.abandon()
            return bound
        return life, bound

    def _bind(self, claim: Claim, finding: Finding, former: Mark | None, life: Life) -> Bound | Outcome:
        """Life first, then the socket: whoever can connect finds the lock of its owner held."""
        bound = self.prepare(self.directory)
        try:
            if not self._is_unchanged(claim, finding, former):
                bound.abandon()
                return claimed(f"another program changed {self.places.runtime_dir} during the start")
            life.publish()
            bound.publish()
        except BaseException:
            bound.abandon()
            raise
        return bound

    def _is_unchanged(self, claim: Claim, finding: Finding, former: Mark | None) -> bool:
        """Whether our locks and what was judged are still in their places."""
        return (
            self.guard.is_current()
            and claim.is_current()
            and self.directory.mark(RECORD_NAME) == finding.mark
            and self.directory.mark(SOCKET_NAME) == former
        )

    def _look(self) -> Attempt:
        # Nothing is waited for under the start lock, so a full backlog is taken at its word.
        seen = attempt(self.places.socket, timeout_s=0.0, uid=self.places.uid)
        seen.close()
        return seen


def judge_endpoint(seen: Attempt) -> Outcome | None:
    """What connecting says about starting; ``None`` when nobody listens."""
    if seen.outcome in (CONNECTED, BUSY):
        return already(f"a broker listens at {seen.path}")
    if seen.outcome in (ABSENT, REFUSED):
        return None
    return failed(str(seen.error()))


def _judge_record(finding: Finding, own: Mark | None) -> Outcome | None:
    if own is not None and finding.mark == own:
        return None
    if finding.kind == verdict.LIVE:
        # It is ending, or its socket was removed and it will notice.
        return claimed(f"{finding.reason}, but nobody listens at the socket")
    if finding.kind == verdict.UNCERTAIN:
        return uncertain(finding.reason)
    return None
