"""Mutated frames at a reduced count (``python -m tests.trials.mutation`` says a million), and faults to be seen."""

from __future__ import annotations

import random
import textwrap
from typing import TYPE_CHECKING

import pytest

from libintercom.wire.codec import decode_request
from libintercom.wire.frames import encode_json
from tests.trials.mutation import mutations, siege

if TYPE_CHECKING:
    from pathlib import Path

FRAMES = 4_000
# Enough for every kind of frame; the more there are, the longer it takes to find the guilty one.
FAULTY_FRAMES = 500
# Code that a broker runs before it begins -> what a siege must say about it.
PLANTS = {
    "caused by": """
        from intercomd.core.obligations import Obligations
        def confess(self, asker_id, message_id):
            raise ValueError("planted")
        Obligations.cancel = confess
    """,
    "the siege could not go on": """
        import os
        from intercomd.core.asks import Asks
        Asks.open = lambda *_arguments: os._exit(3)
    """,
    "passed on what a client rejects": """
        from intercomd.core.rows import RowBytes
        RowBytes.render = lambda self, *, is_extended, is_guarded=False: b"{}"
    """,
    "memory": """
        from intercomd.core.router import Router
        handle, kept = Router.handle, []
        def keep(self, event, now):
            kept.append(bytearray(b"x" * 50_000))
            return handle(self, event, now)
        Router.handle = keep
    """,
}


def test_a_broker_stands_mutated_frames(seed: int) -> None:
    seen = siege.besiege(FRAMES, random.Random(seed))
    print(f"seed {seed}, {seen.frames} frames on {seen.connections} connections (in full: a million)")
    assert not seen.violations
    assert seen.exchanges
    assert seen.passed_on


@pytest.mark.parametrize("told", PLANTS)
def test_a_siege_sees_a_planted_fault(told: str, tmp_path: Path, seed: int) -> None:
    (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(PLANTS[told]))
    seen = siege.besiege(FAULTY_FRAMES, random.Random(seed), plant=str(tmp_path))
    wanted = "growth in the second half" if told == "memory" else told
    assert any(wanted in violation for violation in seen.violations), seen.violations


def test_a_bug_is_traced_to_the_connection_that_causes_it() -> None:
    connections = [[bytes([number])] for number in range(100)]
    assert siege.trace(connections, lambda some: [b"\x2a"] in some) == [[b"\x2a"]]
    together = siege.trace(connections, lambda some: [b"\x0a"] in some and [b"\x5a"] in some)
    assert [b"\x0a"] in together
    assert [b"\x5a"] in together
    assert siege.trace(connections, lambda _some: False) == []


def test_every_frame_that_is_mutated_was_valid() -> None:
    for value in mutations.VALID:
        decode_request(encode_json(value))


def test_a_seed_repeats_what_is_said_and_every_kind_is() -> None:
    one, other = ([siege.choose(random.Random(number)) for number in range(600)] for _ in range(2))
    assert one == other
    assert len({kind for kind, _said in one}) == 7
    raw = [frame for _kind, said in one for frame in said[:-1]]
    assert not any(mutations.is_last(frame) for kind, said in one if kind != "order" for frame in said[:-1])
    assert len(set(raw)) > len(raw) // 2


def test_an_order_ends_with_the_first_frame_that_is_not_allowed() -> None:
    orders = [mutations.shuffle_order(random.Random(seed)) for seed in range(200)]
    starts = [decode_request(said[0][4:]).type for said in orders]
    assert all(len(said) == 1 for said, kind in zip(orders, starts, strict=True) if kind not in ("register", "health"))
    assert max(map(len, orders)) > 4
