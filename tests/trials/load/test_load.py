"""Every trial of load at a reduced scale (``python -m tests.trials.load`` runs them in full), and faults to be seen."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.trials.load.planted import PLANTS
from tests.trials.load.refusals import untruth
from tests.trials.load.report import Report
from tests.trials.load.scale import QUICK
from tests.trials.load.soak import Books, Letter
from tests.trials.load.trials import TRIALS, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.sayings import Object


@pytest.mark.parametrize("name", TRIALS)
def test_a_broker_stands_it(name: str, seed: int) -> None:
    print(f"seed {seed}, reduced: {QUICK} (in full: python -m tests.trials.load)")
    report = run(name, dataclasses.replace(QUICK, seed=seed))
    assert not report.violations


@pytest.mark.parametrize("fault", PLANTS)
def test_a_trial_sees_a_planted_fault(fault: str, tmp_path: Path, seed: int) -> None:
    plant = PLANTS[fault]
    report = run(plant.trial, dataclasses.replace(QUICK, seed=seed), plant.write(str(tmp_path)))
    assert any(plant.told in violation for violation in report.violations), report.violations


def word(books: Books, message_id: str, kind: str) -> None:
    books.hear(cast("Any", None), {"type": kind, "messageId": message_id})


def arrival(books: Books, message_id: str) -> None:
    books.hear(cast("Any", None), {"type": "message", "message": {"id": message_id}})


@pytest.mark.parametrize(
    ("told", "happens"),
    [
        ("LOST: no word", lambda _books: None),
        ("LOST: delivered", lambda books: word(books, "m", "delivered")),
        ("LOST: delivery_queued", lambda books: word(books, "m", "delivery_queued")),
        ("LOST: refused, and arrived", lambda books: (word(books, "m", "delivery_failed"), arrival(books, "m"))),
        ("LOST: a dead letter, and arrived", lambda books: (word(books, "m", "dead_letter"), arrival(books, "m"))),
        ("arrived 2 times", lambda books: (arrival(books, "m"), arrival(books, "m"))),
        ("nobody sent it", lambda books: arrival(books, "other")),
        ("two words", lambda books: (word(books, "m", "delivered"), word(books, "m", "delivery_queued"))),
        ("", lambda books: (word(books, "m", "delivered"), arrival(books, "m"))),
        ("", lambda books: (word(books, "m", "delivery_queued"), word(books, "m", "dead_letter"))),
        ("", lambda books: word(books, "m", "delivery_failed")),
        ("", lambda books: (word(books, "m", "delivered"), books.mark_killed("b"))),
        ("", lambda books: (word(books, "m", "delivery_queued"), word(books, "n", "delivery_queued"))),
    ],
)
def test_the_books_find_what_is_amiss(told: str, happens: Callable[[Books], None]) -> None:
    books = Books()
    books.open("m", Letter("a", "b", "thread"))
    if told == "":
        books.open("n", Letter("a", "b", "thread"))
        word(books, "n", "delivery_queued")
        arrival(books, "n")
        books.letters["n"].word = ""
    happens(books)
    books.judge()
    if told:
        assert any(told in violation for violation in books.violations), books.violations
    else:
        assert not [violation for violation in books.violations if violation.startswith("m:")], books.violations


FULL_REFUSAL: Object = {
    "type": "delivery_failed",
    "code": "rate_limited",
    "rule": "sends",
    "count": 11,
    "limit": 10,
    "retryAfterMs": 5,
    "retryable": True,
    "outcomeKnown": True,
    "reason": "11 sends of this session at once (limit 10); retry in 0.1 s",
}


@pytest.mark.parametrize(
    "changes",
    [
        {"rule": "other"},
        {"rule": None},
        {"retryAfterMs": 0},
        {"retryable": False},
        {"outcomeKnown": False},
        {"count": 12},
        {"limit": 9},
        {"code": "not_found"},
        {"code": "recipient_full"},
        {"code": "recipient_full", "rule": "recipient_bytes"},
        {"code": "recipient_stalled", "retryable": False},
    ],
)
def test_what_is_wrong_with_a_refusal_is_seen(changes: Object) -> None:
    assert not untruth(FULL_REFUSAL)
    assert untruth({**FULL_REFUSAL, **changes})


@pytest.mark.parametrize(("value", "is_violation"), [(2.0, False), (3.0, False), (20.1, True)])
def test_a_figure_is_a_violation_beyond_its_margin_only(value: float, is_violation: bool) -> None:
    report = Report("test")
    report.time("p99", value, "x", bar=2.0, margin=10.0)
    report.figure("count", 2, "", bar=2)
    assert bool(report.violations) is is_violation


def test_a_time_is_said_and_not_judged_where_others_share_the_processors(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report("test", is_timed=False)
    report.time("p99", 1_000.0, "x", bar=2.0)
    assert not report.violations
    assert "p99: 1,000 x (OVER the bar of 2 x, not judged in this run)" in capsys.readouterr().out
    report.figure("memory", 3.0, "MiB", bar=2.0)
    assert report.violations
