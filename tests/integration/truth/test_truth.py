"""The truth of ``delivered``, at a reduced count (``python -m tests.integration.truth`` runs it in full)."""

from __future__ import annotations

import random

import pytest

from tests.integration.truth.trials import Tally, end_recipient_at_random, kill_at_each_write

ROUNDS = 60


@pytest.mark.needs("strace")
def test_no_word_is_more_than_the_kernel_had_when_the_broker_dies() -> None:
    tally = Tally()
    moments = kill_at_each_write(tally)
    print(f"moments {moments}, words {tally.words}")
    assert not tally.violations
    # The kill fell between a recipient's flush and its acknowledgement at least once.
    assert tally.whole_frames > tally.words.get("delivered", 0)


def test_no_word_is_more_than_the_kernel_had_when_the_recipient_ends() -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}, rounds {ROUNDS} (in full: python -m tests.integration.truth)")
    tally = Tally()
    end_recipient_at_random(tally, ROUNDS, random.Random(seed))
    assert not tally.violations
    # Every word was said: the trial is not only of one outcome.
    assert tally.words.keys() == {"delivered", "delivery_queued", "delivery_failed"}


def test_the_judgement_catches_a_false_word() -> None:
    tally = Tally()
    tally.judge("planted", {"m0": "delivered", "m1": "delivery_failed"}, ["m1"], prefix="m")
    assert len(tally.violations) == 2
