"""Rows of another device: every one belongs to the device that was asked, and nothing hostile gets through."""

from __future__ import annotations

import pytest

from libintercom.devices.rows import MAX_ROWS, keep_rows, read_rows

ROW = {
    "id": "pi-aaaaaaaa1",
    "name": "api-fix",
    "cwd": "/w",
    "model": "m",
    "status": "idle",
    "acceptsAsks": True,
    "lastSeen": 5,
}


def test_a_row_gets_its_device() -> None:
    ((row,), unusable) = read_rows([ROW], "laptop")
    assert unusable == 0
    assert (row["id"], row["name"], row["target"]) == ("pi-aaaaaaaa1@laptop", "api-fix@laptop", "pi-aaaaa@laptop")
    assert (row["state"], row["acceptsAsks"], row["lastSeenMs"], row["pendingAsks"]) == ("idle", True, 5, None)


def test_a_forged_device_stays_a_name_there() -> None:
    ((row,), _) = read_rows([{**ROW, "name": "boss@desk", "id": "pi-aaaaaaaa1@phone"}], "laptop")
    assert row["name"] == "boss@desk@laptop"
    assert row["id"] == "pi-aaaaaaaa1@phone@laptop"
    assert row["target"].endswith("@laptop")


@pytest.mark.parametrize("bad", [None, "x", [], {}, {"id": 5}, {"id": ""}, {"id": "a\x1b[2J"}, {"id": "x" * 500}])
def test_a_row_without_a_usable_id_is_counted(bad: object) -> None:
    rows, unusable = read_rows([bad, ROW], "laptop")
    assert (len(rows), unusable) == (1, 1)


def test_wrong_members_are_unknown() -> None:
    told = {
        "id": "pi-1", "name": 5, "cwd": None, "model": [], "acceptsAsks": "yes", "pendingAsks": -1, "lastSeen": "now",
        "projectId": "zz", "status": {},
    }  # fmt: skip
    ((row,), _) = read_rows([told], "laptop")
    assert (row["name"], row["cwd"], row["model"], row["state"]) == (None, "unknown", "unknown", "unknown")
    assert (row["pendingAsks"], row["lastSeenMs"], row["projectId"]) == (None, None, None)


def test_labels_and_lists_have_an_end() -> None:
    many = [{**ROW, "id": f"pi-{number:08d}", "name": "n" * 10_000 + "\x1b"} for number in range(MAX_ROWS + 7)]
    rows, unusable = read_rows(many, "laptop")
    assert (len(rows), unusable) == (MAX_ROWS, 7)
    assert len(rows[0]["name"]) < 1_100


@pytest.mark.parametrize("sessions", [None, {}, "x", 5])
def test_what_is_no_list_is_nobody(sessions: object) -> None:
    assert read_rows(sessions, "laptop") == ([], 0)


@pytest.mark.parametrize(
    ("to", "kept"),
    [
        ("API", 1),
        ("fix@LAPTOP", 1),
        ("pi-aaaaa@laptop", 1),
        ("pi-", 2),
        ("laptop", 0),
        ("api@phone", 0),
        ("@laptop", 2),
    ],
)
def test_a_text_keeps_rows_with_or_without_its_ending(to: str, kept: int) -> None:
    rows, _ = read_rows([ROW, {**ROW, "id": "pi-bbbbbbbb1", "name": "web"}], "laptop")
    assert len(keep_rows(rows, to, "laptop")) == kept
