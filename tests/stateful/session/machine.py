"""Long random plays of an inbox: hypothesis chooses among every kind of step, and shortens what breaks an invariant.

Owns the random choice. The steps, the world and what must hold are the explorer's.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from libintercom.wire.messages import Host
from tests.stateful.session.scenarios import ALPHABET
from tests.stateful.session.world import SHAPES, World

# Long enough that several runs, crashes and doubts meet.
STEPS = 60
# In the test run; the command plays more.
EXAMPLES = 40
HOSTS = (
    Host(steer=True, wake=True, turn_end=True),
    Host(wake=True, turn_end=True),
    Host(steer=True, wake=True),
    Host(prompt_only=True, turn_end=True),
    Host(),
)
_FLOWING = ("stored", "the host takes", "the host looks", "the turn ends", "the reply is taken", "start again")


@settings(
    stateful_step_count=STEPS,
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
class Play(RuleBasedStateMachine):
    """One random play."""

    @initialize(host=st.sampled_from(HOSTS), can_tell=st.booleans())
    def begin(self, host: Host, can_tell: bool) -> None:
        self.world = World(host, can_tell=can_tell, max_messages=STEPS)

    @rule(label=st.sampled_from(sorted(ALPHABET)))
    def take_any_step(self, label: str) -> None:
        self.world.perform(ALPHABET[label])

    @rule(label=st.sampled_from(_FLOWING))
    def go_on(self, label: str) -> None:
        self.world.perform(ALPHABET[label])

    @rule(shape=st.sampled_from(sorted(SHAPES)))
    def arrive(self, shape: str) -> None:
        self.world.arrive(shape)

    @rule(number=st.integers(1, 20))
    def arrive_again(self, number: int) -> None:
        self.world.arrive_again(number)

    def teardown(self) -> None:
        if hasattr(self, "world") and not self.world.is_broken:
            self.world.wind_down()
