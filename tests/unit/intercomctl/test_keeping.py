"""The file of a question whose reply is kept: written whole, private, and found again by its broker alone."""

from __future__ import annotations

import os
import stat

import pytest

from intercomctl import keeping
from intercomctl.keeping import NotKept

TOKEN = "0123456789abcdef" * 2


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "intercom" / "asks"


def test_a_question_is_found_again_with_its_secret(state):
    keeping.keep("q/1\ud800", TOKEN, "reviewer", 1_000, 60.0)
    (kept,) = keeping.kept_asks()
    assert (kept.message_id, kept.reply_token, kept.to) == ("q/1\ud800", TOKEN, "reviewer")
    assert (kept.asked_at_ms, kept.keep_until_ms) == (1_000, 61_000)
    assert keeping.find("q/1\ud800") == kept
    (path,) = state.iterdir()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(state).st_mode) == 0o700


def test_the_oldest_comes_first_and_a_dropped_one_is_gone(state):
    keeping.keep("q2", TOKEN, "b", 2, 1.0)
    keeping.keep("q1", TOKEN, "a", 1, 1.0)
    assert [kept.message_id for kept in keeping.kept_asks()] == ["q1", "q2"]
    keeping.drop("q1")
    keeping.drop("q1")
    assert [kept.message_id for kept in keeping.kept_asks()] == ["q2"]
    assert keeping.find("q1") is None


def test_another_brokers_questions_are_left_alone(state, tmp_path, monkeypatch):
    keeping.keep("q1", TOKEN, "a", 1, 1.0)
    monkeypatch.setenv("PI_INTERCOM_RUNTIME_DIR", str(tmp_path))
    assert keeping.kept_asks() == []
    assert keeping.find("q1") is not None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff", b'{"version": 1, "messageId": "q"}'])
def test_what_is_no_such_file_is_passed_over(state, content):
    keeping.keep("q1", TOKEN, "a", 1, 1.0)
    (state / "other.json").write_bytes(content)
    (state / "draft.json.7").write_bytes(b"{")
    (state / "link.json").symlink_to(next(state.iterdir()))
    assert [kept.message_id for kept in keeping.kept_asks()] == ["q1"]


def test_a_folder_that_cannot_be_written_is_told(state):
    state.parent.mkdir()
    state.write_bytes(b"")
    with pytest.raises(NotKept) as raised:
        keeping.keep("q1", TOKEN, "a", 1, 1.0)
    assert str(raised.value).startswith(f"cannot keep a question in {state}: ")
    assert keeping.kept_asks() == []
