"""The log file: its form, its cap, its privacy, and that it never fails the broker."""

from __future__ import annotations

import json
import os
import stat
import sys
from typing import TYPE_CHECKING, Any

import pytest

from intercomd.core.events import DeliveriesTaken, FrameReceived
from intercomd.edges import log as log_module
from intercomd.edges.log import BrokerLog, clean, summarize
from libintercom.wire.requests import Health

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "the launch code is 0000"
HOSTILE = "\x1b[31m \x1b]52;c;x\x07 \u202e \U000e0041 [red] :warning: \ud83d \x7f \x9b31m"


def open_log(directory: Path, max_bytes: int = 100_000, level: str = "info") -> BrokerLog:
    return BrokerLog(str(directory / "broker.log"), max_bytes=max_bytes, level=level)


def lines(directory: Path, name: str = "broker.log") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / name).read_text(encoding="ascii").splitlines()]


def test_a_record_is_one_line_of_json(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.write("info", "serving", {"pid": 7, "reason": None, "ids": ["a", "b"]})
    log.close()
    (record,) = lines(tmp_path)
    assert list(record) == ["at", "level", "what", "pid", "reason", "ids"]
    assert (record["level"], record["what"], record["pid"], record["ids"]) == ("info", "serving", 7, ["a", "b"])
    assert len(record["at"]) == len("2026-01-01T00:00:00.000Z")


def test_the_file_is_private(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.write("error", "x", {})
    log.close()
    assert stat.S_IMODE((tmp_path / "broker.log").stat().st_mode) == 0o600


def test_no_record_can_speak_to_a_terminal(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.write("error", HOSTILE, {"name": HOSTILE, HOSTILE: 1})
    log.close()
    raw = (tmp_path / "broker.log").read_bytes()
    assert all(0x20 <= byte < 0x7F or byte == 0x0A for byte in raw)
    assert raw.count(b"\n") == 1
    assert lines(tmp_path)[0]["name"] == HOSTILE


def test_levels_below_the_wanted_one_are_left_out(tmp_path: Path) -> None:
    log = open_log(tmp_path, level="warning")
    log.write("info", "no", {})
    log.write("warning", "yes", {})
    log.set_level("info")
    log.write("info", "now", {})
    log.close()
    assert [record["what"] for record in lines(tmp_path)] == ["yes", "now"]


def test_records_wait_for_load_and_keep_their_order(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.write("info", "first", {})
    assert not (tmp_path / "broker.log").exists()
    log.load()
    log.load()
    log.write("info", "second", {})
    assert [record["what"] for record in lines(tmp_path)] == ["first", "second"]
    log.close()


def test_an_error_and_a_flood_do_not_wait(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.write("error", "urgent", {})
    assert len(lines(tmp_path)) == 1
    log.close()
    (tmp_path / "broker.log").unlink()
    flooded = open_log(tmp_path)
    for number in range(300):
        flooded.write("info", "flood", {"number": number})
    assert len(lines(tmp_path)) == 300
    flooded.close()


def test_the_file_is_capped_and_one_old_one_is_kept(tmp_path: Path) -> None:
    log = open_log(tmp_path, max_bytes=5_000)
    for number in range(200):
        log.write("error", "flood", {"number": number})
    log.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broker.log", "broker.log.1"]
    assert all(path.stat().st_size <= 5_000 for path in tmp_path.iterdir())
    numbers = [record["number"] for name in ("broker.log.1", "broker.log") for record in lines(tmp_path, name)]
    assert numbers == list(range(numbers[0], 200))


def test_an_earlier_life_counts_into_the_cap(tmp_path: Path) -> None:
    (tmp_path / "broker.log").write_bytes(b"x" * 4_990 + b"\n")
    log = open_log(tmp_path, max_bytes=5_000)
    log.write("error", "new", {})
    log.close()
    assert (tmp_path / "broker.log.1").stat().st_size == 4_991
    assert [record["what"] for record in lines(tmp_path)] == ["new"]


def test_a_link_or_a_pipe_is_not_written_to(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("")
    (tmp_path / "broker.log").symlink_to(target)
    log = open_log(tmp_path)
    log.write("error", "lost", {})
    assert target.read_text() == ""
    (tmp_path / "broker.log").unlink()
    os.mkfifo(tmp_path / "broker.log")
    log.write("error", "lost", {})
    (tmp_path / "broker.log").unlink()
    log.write("error", "found", {})
    log.close()
    assert [(record["what"], record.get("count")) for record in lines(tmp_path)] == [
        ("log records lost", 2),
        ("found", None),
    ]


def test_every_lost_record_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_fd: int, _raw: bytes) -> int:
        raise OSError(28, "No space left on device")

    log = open_log(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", refuse)
        for _ in range(5):
            log.write("error", "lost", {})
    log.write("error", "found", {})
    log.close()
    assert [(record["what"], record.get("count")) for record in lines(tmp_path)] == [
        ("log records lost", 5),
        ("found", None),
    ]


def test_a_disk_that_fills_in_the_middle_of_a_record_leaves_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path)
    log.write("error", "first", {})
    write, room = os.write, [20]
    monkeypatch.setattr(os, "write", lambda fd, raw: write(fd, raw[: room.pop()] if room else raw))
    log.write("error", "cut", {})
    log.write("error", "next", {})
    log.close()
    assert [record["what"] for record in lines(tmp_path)] == ["first", "log records lost", "next"]


def test_a_log_that_was_removed_or_moved_is_begun_again(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.write("error", "first", {})
    (tmp_path / "broker.log").rename(tmp_path / "moved")
    log.write("error", "second", {})
    assert [record["what"] for record in lines(tmp_path)] == ["second"]
    (tmp_path / "broker.log").unlink()
    log.write("error", "third", {})
    log.close()
    assert [record["what"] for record in lines(tmp_path)] == ["third"]


def test_a_log_that_cannot_be_rotated_is_emptied_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "broker.log.1").mkdir()
    log = open_log(tmp_path, max_bytes=5_000)
    for number in range(100):
        log.write("error", "flood", {"number": number})
    log.close()
    assert lines(tmp_path)[-1]["number"] == 99
    assert (tmp_path / "broker.log").stat().st_size <= 5_000


def test_no_descriptor_for_what_renders_records_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise OSError(24, "Too many open files")

    log = open_log(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(log_module, "_load_structlog", refuse)
        for number in range(300):
            log.write("error", "early", {"number": number})
        log.close()
    log.write("error", "late", {})
    log.close()
    found = lines(tmp_path)
    assert [found[0][part] for part in ("what", "count")] == ["log records lost", 45]
    assert [record["number"] for record in found[1:-1]] == list(range(45, 300))
    assert found[-1]["what"] == "late"


def test_a_bug_says_where_and_of_what_kind_but_no_value(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    event = FrameReceived(3, Health(request_id="r"), 30, 5, SECRET.encode(), ())
    try:
        {}[SECRET]
    except KeyError as error:
        log.report_bug(error, event)
    log.close()
    (record,) = lines(tmp_path)
    assert SECRET not in json.dumps(record)
    assert record["error"] == "KeyError"
    assert len(record["text_sha256"]) == 16
    assert record["where"][-1].endswith("test_a_bug_says_where_and_of_what_kind_but_no_value")
    assert record["event"]["type"] == "FrameReceived"
    assert record["event"]["frame"] == "health"
    assert record["event"]["message"] == f"{len(SECRET)} bytes"


def test_a_bug_whose_text_is_about_code_keeps_it(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.report_bug(AttributeError("no attribute 'x'"), None)
    log.close()
    assert lines(tmp_path)[0]["text"] == "no attribute 'x'"
    assert lines(tmp_path)[0]["event"] == {"type": "NoneType"}


def test_a_part_named_like_a_member_of_every_record_stands_aside(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.write("error", "x", {"level": "mine", "event": 1})
    log.close()
    assert lines(tmp_path)[0]["level"] == "error"
    assert lines(tmp_path)[0]["level_"] == "mine"
    assert lines(tmp_path)[0]["event"] == 1


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (None, None),
        (True, True),
        (1.5, 1.5),
        ("x" * 300, "x" * 300),
        ("x" * 301, "x" * 300 + "… (301 characters)"),
        (b"secret", "6 bytes"),
        (object(), "object"),
        (("a", b"b"), ["a", "1 bytes"]),
        (list(range(20)), list(range(16))),
        ({"a": b"x"}, {"a": "1 bytes"}),
    ],
)
def test_parts_are_cut_down_to_what_a_record_may_hold(part: object, expected: object) -> None:
    assert clean(part) == expected


def test_an_event_without_frames_is_summarized_as_it_is() -> None:
    assert summarize(DeliveriesTaken((1, 2))) == {"type": "DeliveriesTaken", "tokens": (1, 2)}
    assert summarize("x") == {"type": "str"}


def test_loading_brings_no_terminal_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    before = sys.modules.get("rich")
    log_module._load_structlog()
    assert sys.modules.get("rich") is before
