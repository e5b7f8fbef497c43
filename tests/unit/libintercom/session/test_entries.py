"""Entries of one message and what they add up to."""

from __future__ import annotations

import itertools

import pytest

from libintercom.session import entries
from libintercom.session.entries import FINAL, FOLLOWERS, KINDS, Entry, Standing, extend, fold


def entry(kind: str, number: int = 0, **body):
    if kind in ("admitted", "reply_received"):
        body = {"from": {"id": "ann"}, "message": {"id": "m1", "expectsReply": True}, **body}
    return Entry(entry_id=f"e{number}", message_id="m1", kind=kind, at_ms=number, body=body)


def standing_of(*kinds: str) -> Standing:
    folded = fold(entry(kind, number) for number, kind in enumerate(kinds))
    assert folded
    return folded


def test_nothing_adds_up_to_nothing():
    assert fold([]) is None


@pytest.mark.parametrize(
    "life",
    [
        ("admitted", "queued", "handed", "placed", "consumed"),
        ("admitted", "handed", "uncertain", "queued", "handed", "placed"),
        ("admitted", "handed", "queued", "replaced"),
        ("admitted", "handed", "uncertain", "discarded"),
        ("reply_received",),
    ],
)
def test_a_life_ends_with_its_last_kind(life):
    assert standing_of(*life).kind == life[-1]


@pytest.mark.parametrize("end", [end for end in FINAL if end != "placed"])
@pytest.mark.parametrize("more", [kind for kind in KINDS if kind in FOLLOWERS])
def test_nothing_follows_an_end(end, more):
    lives = {"consumed": ("admitted", "handed", "placed"), "reply_received": ()}
    life = (*lives.get(end, ("admitted",)), end)
    assert standing_of(*life, more).kind == end


def test_what_was_observed_stays_observed_whatever_came_after():
    told = standing_of("admitted", "queued", "handed", "uncertain", "discarded")
    assert (told.was_queued, told.was_handed, told.was_discarded, told.placement) == (True, True, True, None)
    late = fold(
        [entry("admitted"), entry("handed"), entry("uncertain"), entry("discarded"), entry("placed", placement="p")]
    )
    assert late
    assert (late.kind, late.placement) == ("discarded", "p")


def test_a_placement_without_a_name_is_none():
    folded = fold([entry("admitted"), entry("handed"), entry("placed", placement="")])
    assert folded
    assert (folded.kind, folded.placement) == ("placed", None)


def test_a_closed_question_is_never_opened_again():
    for closing, later in itertools.product(entries.CLOSING_FACTS, entries.FACTS):
        told = standing_of("admitted", closing, later, "admitted", "handed", "placed")
        assert (told.fact, told.is_open_ask) == (closing, False)


def test_an_answer_that_did_not_leave_opens_its_question_again():
    answering = fold([entry("admitted"), entry("answering", by="r1")])
    assert answering
    assert (answering.fact, answering.answers, answering.is_open_ask) == ("answering", ("r1",), True)
    again = extend(answering, entry("unanswered", by="r1"))
    assert (again.fact, again.answers, again.is_open_ask) == ("", (), True)


def test_an_answer_that_may_have_left_stays_in_doubt_behind_one_that_did_not():
    told = fold(
        [entry("admitted"), entry("answering", by="r1"), entry("answering", by="r2"), entry("unanswered", by="r2")]
    )
    assert told
    assert (told.fact, told.answers) == ("answering", ("r1",))
    assert extend(told, entry("replied", by="r1")).answers == ("r1",)


@pytest.mark.parametrize(
    ("life", "is_unfinished"),
    [
        (("admitted",), True),
        (("admitted", "handed"), True),
        (("admitted", "handed", "uncertain"), True),
        (("admitted", "handed", "placed"), True),
        (("admitted", "handed", "placed", "consumed"), True),
        (("admitted", "handed", "placed", "replied"), False),
        (("admitted", "replied"), True),
        (("admitted", "queued", "replaced"), False),
        (("admitted", "queued", "discarded"), False),
        (("reply_received",), False),
        (("replied",), False),
    ],
)
def test_what_a_new_start_takes_up(life, is_unfinished):
    assert standing_of(*life).is_unfinished is is_unfinished


def test_step_by_step_is_the_same_as_at_once():
    for life in itertools.product(KINDS, repeat=3):
        made = [entry(kind, number) for number, kind in enumerate(life)]
        stepwise = None
        for one in made:
            stepwise = extend(stepwise, one, order=7)
        assert stepwise == fold(made, order=7)


def test_every_kind_is_a_state_or_a_fact():
    assert set(KINDS) == (set(FOLLOWERS) - {""}) | set(entries.FACTS)
    assert {kind for kinds in FOLLOWERS.values() for kind in kinds} == set(FOLLOWERS) - {""}
