"""The count behind "nothing lost": it must see each way in which the word of an outcome can be broken."""

from __future__ import annotations

import pytest

from bench.figures.restarts import count_wrong

_SENT = {"a": "delivered", "b": "delivered", "c": "unknown", "d": "not_sent", "e": "refused", "f": "queued"}


@pytest.mark.parametrize("received", [["a", "b"], ["b", "c", "a"], ["a", "b", "f"]])
def test_an_unknown_or_held_message_may_arrive_or_not(received: list[str]) -> None:
    assert count_wrong(_SENT, received, []) == 0


@pytest.mark.parametrize(
    ("received", "waiting"),
    [
        pytest.param(["a"], [], id="delivered and lost"),
        pytest.param(["a", "b", "b"], [], id="received twice"),
        pytest.param(["a", "b", "d"], [], id="received though not sent"),
        pytest.param(["a", "b", "e"], [], id="received though refused"),
        pytest.param(["a", "b"], ["c"], id="left on record"),
    ],
)
def test_every_broken_word_counts(received: list[str], waiting: list[str]) -> None:
    assert count_wrong(_SENT, received, waiting) == 1


def test_a_delivered_message_that_is_left_on_record_counts_once() -> None:
    assert count_wrong(_SENT, ["a"], ["b"]) == 1
