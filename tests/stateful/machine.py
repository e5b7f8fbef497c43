"""Long random plays: hypothesis chooses among every kind of step, and shortens what breaks an invariant.

Owns the random choice. The steps, the world and what must hold are the explorer's.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.stateful import actions as do
from tests.stateful.cast import PARTS
from tests.stateful.scenarios import SCENARIOS
from tests.stateful.world import World
from tests.support.rig import make_router

# Long enough that timeouts, limits and what was forgotten meet; short enough for a minute of many plays.
STEPS = 60
EXAMPLES = 150

# Small limits, so that random plays reach them.
_LIMITS = {
    "recipient_messages": 4,
    "recipient_bytes": 4_000,
    "pair_messages": 12,
    "send_burst": 20,
    "sends_per_s": 1.0,
    "stage_keys": 3,
    "max_unregistered": 3,
    "letters": 5,
    "max_asks_per_recipient": 3,
}
_ALPHABET = {action.label: action for scenario in SCENARIOS for action in scenario.alphabet}
_PARTS = st.sampled_from(sorted(PARTS))


@settings(
    stateful_step_count=STEPS,
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
class Play(RuleBasedStateMachine):
    """One random play."""

    @initialize()
    def begin(self) -> None:
        self.world = World(make_router(**_LIMITS))
        for key in PARTS:
            self.world.connect(key)
            self.world.register(key)

    @rule(label=st.sampled_from(sorted(_ALPHABET)))
    def do_anything(self, label: str) -> None:
        _ALPHABET[label].perform(self.world)

    @rule(key=_PARTS, to=_PARTS, delivery=st.sampled_from([None, "steer", "queue", "passive"]))
    def send(self, key: str, to: str, delivery: str | None) -> None:
        members = {} if delivery is None else {"delivery": delivery}
        self.world.send(key, PARTS[to].peer_id, "p", **members)

    @rule(key=_PARTS, to=_PARTS, timeout_ms=st.sampled_from([None, 0, 1, 60_000, 3_600_000]))
    def ask(self, key: str, to: str, timeout_ms: int | None) -> None:
        members = {} if timeout_ms is None else {"timeout_ms": timeout_ms}
        self.world.send(key, PARTS[to].peer_id, "q", expects_reply=True, **members)

    @rule(key=_PARTS, to=_PARTS)
    def reply(self, key: str, to: str) -> None:
        do.replies(key, PARTS[to].peer_id, to).perform(self.world)

    @rule(key=_PARTS)
    def come(self, key: str) -> None:
        self.world.connect(key)
        self.world.register(key)

    @rule(key=_PARTS, room_bytes=st.sampled_from([None, 0, 1, 300, 700, 5_000]))
    def set_kernel(self, key: str, room_bytes: int | None) -> None:
        (do.takes(key) if room_bytes is None else do.holds(key, room_bytes)).perform(self.world)

    @rule(seconds=st.sampled_from([0.001, 0.5, 1.5, 5.0, 20.0, 61.0, 600.0]))
    def pass_time(self, seconds: float) -> None:
        do.passes(seconds).perform(self.world)

    def teardown(self) -> None:
        if not self.world.is_broken:
            self.world.wind_down()
