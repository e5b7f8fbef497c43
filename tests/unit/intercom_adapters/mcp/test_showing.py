"""What one call of ``pending`` shows: whole messages while they fit, a long one page by page."""

from __future__ import annotations

import pytest

from intercom_adapters.mcp.showing import BUDGET_UNITS, show, show_page
from libintercom.inbound import Inbound
from libintercom.session.host import HostInput
from libintercom.wire.answers import parse_answer
from libintercom.wire.reads import utf16_units
from tests.support.desk import incoming, row


def waiting(message_id: str, text: str) -> HostInput:
    heard = parse_answer(incoming(row("pi-peer0001", "ann"), message_id, "x"))
    inbound = Inbound(row=heard.from_, message=heard.message, raw={})  # type: ignore[attr-defined]
    return HostInput(
        message_id=message_id,
        inbound=inbound,
        delivery="steer",
        is_ask_open=False,
        received_at_ms=1,
        text_sha256="0" * 64,
        placed_sha256="0" * 64,
        text=text,
    )


def test_nothing_waits() -> None:
    shown = show([])
    assert (shown.text, shown.completed, shown.begun, shown.error) == ("", (), (), None)


def test_what_fits_is_shown_whole_and_in_order() -> None:
    shown = show([waiting("a", "one"), waiting("b", "two")])
    assert (shown.text, shown.completed, shown.begun) == ("one\n\ntwo", ("a", "b"), ())


@pytest.mark.parametrize("units", [BUDGET_UNITS - 3, BUDGET_UNITS - 2])
def test_the_budget_is_kept_to_the_unit(units: int) -> None:
    shown = show([waiting("a", "x" * units), waiting("b", "yyy")])
    assert shown.completed == (("a", "b") if units == BUDGET_UNITS - 3 else ("a",))


def test_a_message_behind_one_that_does_not_fit_does_not_overtake_it() -> None:
    shown = show([waiting("a", "one"), waiting("b", "x" * BUDGET_UNITS), waiting("c", "two")])
    assert shown.completed == ("a",)


def test_a_long_message_alone_is_begun() -> None:
    shown = show([waiting("a", "x" * (BUDGET_UNITS + 1)), waiting("b", "two")])
    assert (shown.completed, shown.begun) == ((), ("a",))
    assert shown.text.startswith("x" * BUDGET_UNITS)
    assert f'entryId: "a", offset: {BUDGET_UNITS} }})' in shown.text


def test_its_last_page_completes_it() -> None:
    shown = show_page([waiting("a", "x" * (BUDGET_UNITS + 1))], "a", BUDGET_UNITS)
    assert (shown.text, shown.completed, shown.begun) == ("x", ("a",), ())


def test_a_page_counts_units_and_cuts_no_character() -> None:
    text = "\U0001f600" * BUDGET_UNITS
    first = show_page([waiting("a", text)], "a", 1)
    assert first.error is not None
    assert first.error.code == "invalid_offset"
    shown = show_page([waiting("a", text)], "a", 0)
    assert utf16_units(shown.text.partition("\n\n")[0]) == BUDGET_UNITS


@pytest.mark.parametrize("message_id", ["b", ""])
def test_a_message_that_does_not_wait_cannot_be_paged(message_id: str) -> None:
    shown = show_page([waiting("a", "x")], message_id, 0)
    assert shown.error is not None
    assert (shown.text, shown.completed, shown.error.code) == ("", (), "entry_not_found")
