"""The value rules, each at its edges."""

from __future__ import annotations

import pytest

from libintercom.wire import values

CONTROLS = [chr(code) for code in [*range(0x20), *range(0x7F, 0xA0)]]


@pytest.mark.parametrize("good", ["a", " ", "\ud83d", "é" * 512, "x" * 1024, "\u2028", "\ufeff", "\xa0", "日本"])
def test_label(good: str) -> None:
    assert values.is_label(good)


@pytest.mark.parametrize("bad", ["", "x" * 1025, "é" * 513, "😀" * 257, "\ud83d" * 342, None, 5, True, b"a", ["a"]])
def test_no_label(bad: object) -> None:
    assert not values.is_label(bad)


def test_label_holds_no_control_character_anywhere() -> None:
    for control in CONTROLS:
        for text in (control, f"a{control}", f"{control}a", f"é{control}é"):
            assert not values.is_label(text), repr(text)


def test_text_holds_tab_and_line_ends_and_no_other_control_character() -> None:
    for control in CONTROLS:
        assert values.is_text(f"a{control}b") == (control in "\t\n\r"), repr(control)
    assert values.is_text("")
    assert values.is_text("x" * 1_000_000)
    assert not values.is_text(None)
    assert not values.is_text(b"")


@pytest.mark.parametrize("good", [0, -1, 1.5, -0.0, 2**53, 10**308, 1.7976931348623157e308, -(10**308)])
def test_number(good: object) -> None:
    assert values.is_number(good)


@pytest.mark.parametrize(
    "bad", [True, False, None, "1", float("inf"), float("-inf"), float("nan"), 10**309, -(2**1024), [1]]
)
def test_no_number(bad: object) -> None:
    assert not values.is_number(bad)


@pytest.mark.parametrize(("value", "is_count"), [(0, True), (2.0, True), (-0.0, True), (1e300, True), (-1, False)])
def test_count(value: object, is_count: bool) -> None:
    assert values.is_count(value) is is_count
    assert not values.is_count(1.5)
    assert not values.is_count(True)


@pytest.mark.parametrize("bad", ["a" * 63, "a" * 65, "A" * 64, "g" * 64, "a" * 64 + "\n", "٠" * 64, None, 5])
def test_hexadecimal_is_exact(bad: object) -> None:
    """No line end at the end and no digits of other scripts pass, as they would with a dollar or a digit class."""
    assert not values.is_hex64(bad)
    assert values.is_hex64("0a" * 32)
    assert values.is_hex32("f" * 32)
    assert not values.is_hex32("f" * 32 + "\n")


def test_trim_is_javascripts() -> None:
    space = "\t\n\x0b\x0c\r \xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
    assert values.js_trim(space + "a b" + space) == "a b"
    for kept in "\x1c\x1d\x1e\x1f\x85\u180e\u200b":
        assert values.js_trim(f"{kept}a{kept}") == f"{kept}a{kept}", repr(kept)


@pytest.mark.parametrize(
    ("value", "is_thread"),
    [("t", True), (" t ", True), ("\n t", True), (" ", False), ("", False), ("a\nb", False), ("x" * 1025, False)],
)
def test_thread_is_a_label_once_trimmed(value: str, is_thread: bool) -> None:
    assert values.THREAD.accepts(value) is is_thread


@pytest.mark.parametrize(
    ("value", "is_timeout"), [(0, True), (3_600_000, True), (3_600_001, False), (-1, False), (0.5, False), (1.0, True)]
)
def test_ask_timeout(value: object, is_timeout: bool) -> None:
    assert values.ASK_TIMEOUT.accepts(value) is is_timeout


def test_reply_may_be_kept_for_a_day() -> None:
    assert values.KEEP_TIME.accepts(86_400_000)
    assert not values.KEEP_TIME.accepts(86_400_001)


def test_words_are_exact() -> None:
    rule = values.one_of("steer", "queue")
    assert rule.accepts("steer")
    for wrong in ("Steer", "steer ", "", None, 5, ["steer"]):
        assert not rule.accepts(wrong)
    assert "steer, queue" in repr(rule)


@pytest.mark.parametrize(
    ("text", "label"), [("", "?"), ("a\nb", "a\ufffdb"), ("\x1b[31m", "\ufffd[31m"), ("ok", "ok"), ("\x9f", "\ufffd")]
)
def test_scrubbed_text_is_a_label(text: str, label: str) -> None:
    assert values.scrub_label(text) == label
    assert values.is_label(label)


def test_size_is_that_of_utf8_and_a_lone_surrogate_takes_three() -> None:
    assert [values.size_of(text) for text in ("a", "é", "€", "😀", "\ud83d")] == [1, 2, 3, 4, 3]
