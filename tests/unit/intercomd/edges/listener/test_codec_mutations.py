"""Frames that are almost right: both codecs give the same verdict on each."""

from __future__ import annotations

import json
import random
from typing import Any

from libintercom.errors import InvalidFrame
from libintercom.wire.frames import encode_json
from libintercom.wire.requests import BadSend
from tests.support import sayings as say
from tests.support.codecs import agree, both

# How many mutated frames one run judges; the seed of the run is printed by pytest's header.
MUTATIONS = 4_000

SEEDS = [
    encode_json(frame)
    for frame in (
        say.send("bob", "m1", "hello", delivery="steer"),
        say.ask("bob", "m2", "über 😀\nx", timeoutMs=5),
        say.replace("bob", "m3", "thread"),
        say.send("b", "m", content={"text": "", "attachments": [{"type": "file", "name": "n", "content": "c"}]}),
        say.register("ann", id="12345678", ext=1, projectId="0" * 64, rootSessionId="r", host={"steer": True}),
        say.register_sibling("sib", id="x", contextPct=None),
        say.presence(name="n", pendingAsks=1, acceptsAsks=True, contextPct=None),
        say.list_sessions(stream=True),
        say.stats(),
        {"type": "message_receipt", "receipt": {"messageId": "m", "status": "queued", "timestamp": 1}},
        {"type": "dead_letters", "requestId": "d", "sinceMs": 5},
        {"type": "extension_publish", "x": 1},
        {"type": "unregister"},
    )
]
SPLICES = [
    b"null",
    b"1.0",
    b"-1",
    b"true",
    b'""',
    b"{}",
    b"[]",
    b"1e400",
    rb'"\ud83d"',
    rb"\u0000",
    b"\\",
    b'"',
    b"\xff",
    b"\x7f",
    b"\xc2\x9b",
]


def mutate(rng: random.Random, payload: bytes) -> bytes:
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(payload) + 1)
        choice = rng.random()
        if choice < 0.4:
            payload = payload[:at] + rng.choice(SPLICES) + payload[at + rng.randint(0, 6) :]
        elif choice < 0.7:
            payload = payload[:at] + bytes([rng.choice(b'{}[]",:0123456789abcdefnul\\ ')]) + payload[at + 1 :]
        else:
            other = rng.choice(SEEDS)
            start = rng.randrange(len(other))
            payload = payload[:at] + other[start : start + rng.randint(1, 20)] + payload[at:]
    return payload


def has_named_difference(payload: bytes) -> bool:
    """A repeated member, which only one codec judges each time."""
    found = False

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        names = [name for name, _value in pairs]
        found |= len(set(names)) < len(names)
        return dict(pairs)

    try:
        json.loads(payload.decode("utf-8", "replace"), object_pairs_hook=look)
    except ValueError:
        return False
    return found


def test_mutated_frames_get_the_same_verdict(seed: int) -> None:
    rng = random.Random(seed)
    verdicts = {"refused": 0, "accepted": 0, "bad send": 0}
    for _ in range(MUTATIONS):
        payload = mutate(rng, rng.choice(SEEDS))
        if has_named_difference(payload):
            both(payload)
            continue
        said = agree(payload)
        verdicts["refused" if said is InvalidFrame else "bad send" if isinstance(said, BadSend) else "accepted"] += 1
    # Otherwise the corpus would show nothing about one of them.
    assert min(verdicts.values()) > MUTATIONS // 100, verdicts
