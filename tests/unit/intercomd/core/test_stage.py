"""What is staged: every short history against a plain dictionary, and each bound at its edge."""

from __future__ import annotations

import itertools

import pytest

from intercomd.core.limits import Limits
from intercomd.core.roster import Session
from intercomd.core.rows import RowBytes
from intercomd.core.stage import Stage, Staged, StageKey
from libintercom.wire.messages import Message, Registration
from libintercom.wire.record import parse_record
from tests.support.sayings import message

KEYS: tuple[StageKey, ...] = (("a", "b", "t"), ("a", "b", "u"), ("c", "b", "t"))

REGISTERED = Registration(cwd="/", model="m")
SENDER = Session(1, "a", REGISTERED, RowBytes("a", REGISTERED, "epoch", 0))


def staged(key: StageKey, size_bytes: int = 10, message_id: str = "m") -> Staged:
    return Staged(key, parse_record(Message, message(message_id)), b"x" * (size_bytes - 4), b"row.", SENDER)


def test_every_short_history_follows_a_dictionary() -> None:
    steps = [(step, key) for step in ("put", "take") for key in KEYS]
    for history in itertools.product(steps, repeat=4):
        stage, model = Stage(Limits(stage_keys_per_sender=1, stage_keys=2, stage_bytes=25)), {}
        for step, key in history:
            if step == "take":
                assert stage.take(key) is model.pop(key, None)
            else:
                new = staged(key, 10 + len(model))
                assert stage.has_room_for(new) is _fits(model, new)
                if _fits(model, new):
                    assert stage.take(key) is model.pop(key, None)
                    stage.put(new)
                    model[key] = new
            _check(stage, model)


def _fits(model: dict[StageKey, Staged], new: Staged) -> bool:
    others = [kept for key, kept in model.items() if key != new.key]
    own = [kept for kept in others if kept.sender_id == new.sender_id]
    is_new = new.key not in model
    return not (is_new and (own or len(others) >= 2)) and sum(kept.size_bytes for kept in others) + new.size_bytes <= 25


def _check(stage: Stage, model: dict[StageKey, Staged]) -> None:
    assert len(stage) == len(model)
    assert stage.all_keys() == list(model)
    assert stage.size_bytes == sum(kept.size_bytes for kept in model.values())
    assert stage._keys_of_sender == {s: n for s in "ac" if (n := sum(key[0] == s for key in model))}


@pytest.mark.parametrize(
    ("limits", "room_for"),
    [
        ({"stage_keys_per_sender": 2}, {"a": False, "z": True}),
        ({"stage_keys": 2}, {"a": False, "z": False}),
        ({"stage_bytes": 30}, {"a": True, "z": True}),
        ({"stage_bytes": 29}, {"a": False, "z": False}),
    ],
)
def test_bounds_at_their_edge(limits: dict[str, int], room_for: dict[str, bool]) -> None:
    stage = Stage(Limits(**limits))
    stage.put(staged(KEYS[0]))
    stage.put(staged(KEYS[1]))
    for sender, has_room in room_for.items():
        assert stage.has_room_for(staged((sender, "b", "new"))) is has_room
    # A known key needs no room of its own, only that for what it grows by.
    assert stage.has_room_for(staged(KEYS[0]))


def test_growing_what_is_staged_is_bounded_too() -> None:
    stage = Stage(Limits(stage_bytes=20))
    stage.put(staged(KEYS[0]))
    assert stage.has_room_for(staged(KEYS[0], 20))
    assert not stage.has_room_for(staged(KEYS[0], 21))


def test_what_concerns_a_session_is_from_it_or_to_it() -> None:
    stage = Stage(Limits())
    for key in KEYS:
        stage.put(staged(key))
    assert [found.key for found in stage.concerning("a")] == list(KEYS[:2])
    assert [found.key for found in stage.concerning("b")] == list(KEYS)
    # A thread may be called like a session.
    assert stage.concerning("t") == []


def test_a_message_is_found_by_its_sender_and_id() -> None:
    stage = Stage(Limits())
    stage.put(staged(KEYS[0], message_id="m1"))
    stage.put(staged(KEYS[2], message_id="m2"))
    found = stage.find_message("a", "m1")
    assert found is not None
    assert found.key == KEYS[0]
    assert stage.find_message("a", "m2") is None
