"""Mutated frames at a reduced count (``python -m tests.trials.mutation`` says a million)."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from libintercom.wire.codec import decode_request
from libintercom.wire.frames import encode_json
from tests.trials.mutation import siege
from tests.trials.mutation.mutations import VALID, is_last, mutate_bytes, mutate_json

if TYPE_CHECKING:
    import pytest

FRAMES = 15_000


def test_a_broker_stands_mutated_frames(seed: int) -> None:
    seen = siege.besiege(FRAMES, random.Random(seed))
    print(f"seed {seed}, {seen.frames} frames on {seen.connections} connections (in full: a million)")
    assert not seen.violations
    assert seen.exchanges


def test_every_frame_that_is_mutated_was_valid() -> None:
    for value in VALID:
        decode_request(encode_json(value))


def test_mutations_are_repeated_by_their_seed_and_of_every_kind() -> None:
    one, other = random.Random(1), random.Random(1)
    first = [mutate_json(one) for _ in range(500)] + [mutate_bytes(one) for _ in range(500)]
    assert first == [mutate_json(other) for _ in range(500)] + [mutate_bytes(other) for _ in range(500)]
    assert {is_last(raw) for raw in first[:500]} == {True, False}


def test_a_siege_tells_what_is_wrong(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(siege, "_GROWTH_BYTES", -(1 << 40))
    assert "memory grew" in siege.besiege(100, random.Random(seed)).violations[0]
