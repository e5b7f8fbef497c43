"""``list`` and ``status`` as text, whole, as a reader gets them."""

from __future__ import annotations

from typing import Any

import pytest

from libintercom.list_texts import (
    GUIDANCE,
    TOOL_CHILDREN_CALL,
    age_text,
    list_text,
    status_text,
)
from libintercom.outcomes import Listing
from libintercom.profile import Profile
from libintercom.roster import Filters, Roster, build_roster
from libintercom.wire.answers import parse_rows
from libintercom.wire.messages import BrokerHello
from tests.support.desk import HELLO, NOW_MS, row

P1 = "1" * 64
PROFILE = Profile(cwd="/work", model="m", root_session_id="root-a")
ME = row(
    "pi-53271aa1",
    "lead",
    rootSessionId="root-a",
    status="thinking",
    acceptsAsks=False,
    pendingAsks=0,
    lastSeen=NOW_MS - 5_000,
    lastIntercomActivity=0,
    projectId=P1,
)
API = row(
    "pi-7e8f9aaa",
    "api-fix",
    cwd="/work/api",
    model="model-b",
    rootSessionId="root-b",
    status="idle",
    acceptsAsks=True,
    pendingAsks=0,
    lastSeen=NOW_MS - 7_200_000,
    lastIntercomActivity=NOW_MS - 61_000,
)
BARE = row("pi-bare0001")
KIDS = [
    row(f"pi-kid0000{number}", f"kid {number}", rootSessionId="root-a", parentSessionId="root-a", status=status)
    for number, status in enumerate(["idle", "idle", "tool:bash"])
]
ME_LINE = (
    "• lead (pi-53271) — Native session cwd: /work (model-a) [self, thinking, state:busy, accepts_asks:false, "
    "pending_asks:0, last_intercom_activity:none, last_seen:5s ago]"
)
API_LINE = (
    "• api-fix (pi-7e8f9) — Native session cwd: /work/api (model-b) [idle, state:idle, accepts_asks:true, "
    "pending_asks:0, last_intercom_activity:1m ago, last_seen:2h ago]"
)
BARE_LINE = (
    "• (unnamed) (pi-bare0) — Native session cwd: /work (model-a) [state:unknown, accepts_asks:unknown, "
    "pending_asks:unknown, last_intercom_activity:none, last_seen:unknown]"
)


def view(*rows: dict[str, Any], omitted: int = 0, own: str = "pi-53271aa1", **filters: Any) -> Roster:
    listing = Listing(rows=tuple(parse_rows(list(rows))), omitted=omitted)
    return build_roster(listing, PROFILE, own, Filters(**filters))


def blocks(*expected: str) -> str:
    return "\n\n".join([*expected, GUIDANCE])


def test_two_blocks_and_guidance_once() -> None:
    text = list_text(view(ME, BARE, API, *KIDS), NOW_MS, TOOL_CHILDREN_CALL)
    assert text == blocks(
        f"**Current session:**\n{ME_LINE}",
        f"**Main sessions (2):**\n{BARE_LINE}\n{API_LINE}",
        '**Child sessions (3):** 2 idle, 1 busy. Their rows: intercom({ action: "list", children: true })',
    )
    assert text.count("**Delivery:**") == 1


def test_children_rows_replace_their_count() -> None:
    text = list_text(view(ME, KIDS[0], with_children=True), NOW_MS)
    assert text == blocks(
        f"**Current session:**\n{ME_LINE}",
        "**Main sessions (0):** no other one is connected.",
        "**Child sessions (1):**\n"
        "• kid 0 (pi-kid00) — Native session cwd: /work (model-a) [idle, state:idle, accepts_asks:unknown, "
        "pending_asks:unknown, last_intercom_activity:none, last_seen:unknown]",
    )


def test_main_without_children_has_one_block_and_the_command_line_its_own_call() -> None:
    assert "Child sessions" not in list_text(view(ME, API), NOW_MS)
    assert list_text(view(ME, *KIDS), NOW_MS).count("intercomctl list --children") == 1


def test_text_filter_says_how_many_of_how_many() -> None:
    text = list_text(view(ME, API, BARE, *KIDS, to="API"), NOW_MS)
    assert text == blocks(
        f"**Current session:**\n{ME_LINE}",
        f'**Main sessions (1 of 2 match "API"):**\n{API_LINE}',
        '**Child sessions (0 of 3 match "API"):**',
    )


def test_project_filter_says_how_many_of_how_many() -> None:
    text = list_text(view(ME, API, BARE, *KIDS, project_id=P1), NOW_MS)
    assert "**Main sessions (0 of 2 in this project):**" in text
    assert "**Child sessions (0 of 3 in this project):** 2 idle, 1 busy." in text
    both = list_text(view(ME, API, BARE, to="api", project_id=P1), NOW_MS)
    assert '**Main sessions (0 of 2 match "api" in this project):**' in both


def test_cut_list_says_how_much_is_missing() -> None:
    assert "\n\n12 more did not fit the broker's answer.\n\n" in list_text(view(ME, omitted=12), NOW_MS)


def test_shared_name_shows_its_targets() -> None:
    twins = [row("pi-twin0001", "Twin"), row("pi-twin0002", "twin")]
    text = list_text(view(ME, *twins), NOW_MS)
    assert "• Twin (pi-twin0001) — Native session cwd: /work (model-a) [target:pi-twin0001, state:unknown," in text
    assert "[target:pi-twin0002, state:unknown," in text
    assert "target:pi-53271" not in text


def test_stalled_session_says_so_last() -> None:
    assert "last_seen:unknown, stalled]" in list_text(view(ME, row("pi-a", stalled=True)), NOW_MS)


@pytest.mark.parametrize(
    ("passed_ms", "text"),
    [
        (0, "0s ago"),
        (999, "0s ago"),
        (59_999, "59s ago"),
        (60_000, "1m ago"),
        (3_599_999, "59m ago"),
        (3_600_000, "1h ago"),
        (90_000_000, "25h ago"),
        (-5_000, "0s ago"),
    ],
)
def test_ages_are_floored(passed_ms: int, text: str) -> None:
    assert age_text(NOW_MS - passed_ms, NOW_MS) == text


def test_an_absurd_time_of_a_peer_stays_readable() -> None:
    """Any finite number is a valid time on the wire."""
    assert age_text(-1e308, NOW_MS) == "over 8766000h ago"
    assert age_text(1e308, NOW_MS) == "0s ago"


def test_nothing_of_a_peer_acts_on_a_terminal() -> None:
    hostile = row(
        "pi-\u202ebad", "[red]\u200bname:warning:", cwd="/w\U000e0041", model="m\ud83d", status="idle \u2066x"
    )
    text = list_text(view(ME, hostile, to=""), NOW_MS)
    [line] = [line for line in text.splitlines() if "[red]" in line]
    assert line.startswith(
        "• [red]<U+200B>name:warning: (pi-<U+202E>bad) — Native session cwd: /w<U+E0041> (m<U+D83D>) [idle <U+2066>x,"
    )
    text.encode()


def test_hostile_filter_text_is_cleaned_too() -> None:
    assert 'match "a<U+202E>␛"' in list_text(view(ME, API, to="a\u202e\x1b"), NOW_MS)


def test_status_has_its_header_before_the_list() -> None:
    roster = view(ME, API, *KIDS)
    hello = BrokerHello(program="intercomd", version="0.1.0", pid=7, incarnation="i", start_identity=None, starter=None)
    text = status_text(roster, NOW_MS, session_id="pi-53271aa1", broker=hello, project_id=P1, pending=2)
    assert text == (
        "**Connected:** yes\n"
        "**Session ID:** pi-53271aa1\n"
        "**Sessions:** 5\n"
        "**Pending inbound messages:** 2\n"
        "**Broker:** intercomd 0.1.0, pid 7\n"
        "**Project:** 111111111111\n\n" + list_text(roster, NOW_MS)
    )


def test_status_of_an_old_broker_and_no_project() -> None:
    text = status_text(view(ME), NOW_MS, session_id="pi-53271aa1", broker=None, project_id=None, pending=0)
    assert "**Broker:** older than this program\n**Project:** none\n" in text
    assert HELLO["version"] not in text
