"""From an error to one line, an exit status, and for a bug a private report."""

from __future__ import annotations

import json
import os
import stat
import sys

import pytest

from intercomctl import failures
from libintercom import errors

BODY = "the secret body"


def raising(error):
    def run():
        raise error

    return run


STATUSES = [
    (failures.InvalidUsage("a and b do not go together."), 2),
    (errors.InvalidLineage("only one is set"), 2),
    (errors.InvalidConfiguration("f.json", "key", "is no number"), 2),
    (errors.Refused("m", "not_found", "Session not found"), 1),
    (errors.OutcomeUnknown("m", "the connection broke"), 3),
    (errors.NotRunning("/run/broker.sock", "no socket"), 4),
    (errors.ForeignOwner("/run/broker.sock", "uid 7"), 4),
    (errors.TimedOut("list", 5.0), 4),
    # Of a list, for instance: nothing was sent whose fate could be unknown.
    (errors.Disconnected("list", "the broker closed the connection"), 4),
    (errors.NoReply("m", "bob", "timeout", "no reply"), 5),
    (KeyboardInterrupt(), 130),
]


@pytest.mark.parametrize(("error", "status"), STATUSES, ids=lambda value: type(value).__name__)
def test_a_failure_is_one_line_and_its_status(capsys, error, status):
    assert failures.guard(raising(error)) == status
    out, err = capsys.readouterr()
    assert not out
    assert err.count("\n") == 1
    assert err.startswith("intercomctl: ")
    assert str(error) in err


def test_what_runs_well_keeps_its_status(capsys):
    assert failures.guard(lambda: 5) == 5
    assert capsys.readouterr() == ("", "")


def test_with_json_a_failure_is_an_object_as_well(capsys):
    failures.guard(raising(errors.NotRunning("/run/broker.sock", "no socket")), is_json=True)
    out, err = capsys.readouterr()
    shown = json.loads(out)
    assert shown["version"] == 1
    assert shown["exitStatus"] == 4
    assert shown["error"] in err


def test_every_status_of_an_error_is_explained():
    explained = {status for status, _meaning in failures.EXIT_STATUSES}
    assert explained == {0, 1, 2, 3, 4, 5, 70, 130}
    classes = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    kinds = [kind for kind in classes if issubclass(kind, errors.IntercomError)]
    assert len(kinds) > 10
    assert {kind.exit_status for kind in kinds} <= explained
    for status in explained:
        assert f"{status}  " in failures.EXIT_STATUS_HELP


def test_hostile_words_in_a_failure_are_harmless(capsys):
    failures.guard(raising(errors.Refused("m", "not_found", "no \x1b]52;c;x\x07 \u202e")))
    assert not [c for c in capsys.readouterr().err if not c.isprintable() and c != "\n"]


def fail_with_a_bug():
    text = BODY
    return text["x"]  # type: ignore[call-overload]


@pytest.fixture
def state(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["intercomctl", "send", "bob", BODY])
    return tmp_path / "intercom" / "reports"


def test_a_bug_is_one_line_a_report_and_status_70(capsys, state):
    assert failures.guard(fail_with_a_bug) == 70
    (report,) = os.listdir(state)
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "bug: TypeError in " in line
    assert f"{state}/{report}" in line


def test_the_report_is_private_and_quotes_no_argument(state):
    failures.guard(fail_with_a_bug)
    (name,) = os.listdir(state)
    report = state / name
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    text = report.read_text(encoding="utf-8")
    assert "fail_with_a_bug" in text
    assert "intercomctl 0" in text
    assert " send\n" in text
    assert BODY not in text


def test_a_bug_without_a_place_for_its_report_says_so(capsys, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert failures.guard(fail_with_a_bug) == 70
    assert "No report could be written" in capsys.readouterr().err
