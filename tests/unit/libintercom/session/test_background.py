"""Failures that nobody asked about: each once until recovery, and where each is said."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.session import background
from libintercom.session.background import LOG_NAME, BackgroundErrors

if TYPE_CHECKING:
    from pathlib import Path

    from libintercom.session.background import BackgroundError


def log_lines(agent_dir: Path) -> list[str]:
    return (agent_dir / "intercom" / LOG_NAME).read_text().splitlines()


@pytest.fixture
def told() -> list[BackgroundError]:
    return []


def test_a_repeated_failure_is_said_once_until_recovery(told: list[Any]) -> None:
    errors = BackgroundErrors(told.append)
    for _ in range(3):
        errors.report("reconnect", "no socket")
    errors.report("journal", "disk full")
    errors.report("reconnect", "refused")
    errors.recover("reconnect")
    errors.report("reconnect", "refused")
    assert [(one.operation, one.reason) for one in told] == [
        ("reconnect", "no socket"),
        ("journal", "disk full"),
        ("reconnect", "refused"),
        ("reconnect", "refused"),
    ]


def test_recovery_of_one_operation_leaves_the_others_said(told: list[Any]) -> None:
    errors = BackgroundErrors(told.append)
    errors.report("journal", "disk full")
    errors.recover("reconnect")
    errors.report("journal", "disk full")
    assert len(told) == 1


def test_without_a_listener_stderr_hears_one_harmless_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    BackgroundErrors(None, str(tmp_path)).report("reconnect", "bad\nname \x1b[31m")
    assert capsys.readouterr().err == "intercom: reconnect: bad␊name ␛[31m\n"
    assert not (tmp_path / "intercom").exists()


def test_stderr_still_hears_during_shutdown(capsys: pytest.CaptureFixture[str]) -> None:
    errors = BackgroundErrors(None)
    errors.close()
    errors.report("journal", "disk full")
    assert capsys.readouterr().err == "intercom: journal: disk full\n"


def test_a_program_that_listens_no_more_gets_a_log(told: list[Any], tmp_path: Path) -> None:
    errors = BackgroundErrors(told.append, str(tmp_path))
    errors.close()
    errors.report("journal", "disk\nfull")
    (line,) = log_lines(tmp_path)
    assert line.endswith(f"pid {os.getpid()} intercom: journal: disk␊full")
    assert told == []
    assert os.stat(tmp_path / "intercom" / LOG_NAME).st_mode & 0o777 == 0o600


def test_without_stderr_there_is_the_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Broken:
        def write(self, _text: str) -> int:
            raise BrokenPipeError

        flush = write

    for stream in (None, Broken()):
        monkeypatch.setattr(sys, "stderr", stream)
        BackgroundErrors(None, str(tmp_path)).report("reconnect", "gone")
    assert len(log_lines(tmp_path)) == 2


def test_a_log_that_cannot_be_written_is_silent(told: list[Any], tmp_path: Path) -> None:
    (tmp_path / "intercom").write_text("a file in its place")
    for agent_dir in (str(tmp_path), ""):
        errors = BackgroundErrors(told.append, agent_dir)
        errors.close()
        errors.report("journal", "disk full")
    assert told == []


def test_the_log_stays_bounded(monkeypatch: pytest.MonkeyPatch, told: list[Any], tmp_path: Path) -> None:
    monkeypatch.setattr(background, "MAX_LOG_BYTES", 1_000)
    errors = BackgroundErrors(told.append, str(tmp_path))
    errors.close()
    for number in range(200):
        errors.report("journal", f"disk full {number}")
    kept = [tmp_path / "intercom" / name for name in sorted(os.listdir(tmp_path / "intercom"))]
    assert [path.name for path in kept] == [LOG_NAME, f"{LOG_NAME}.1"]
    assert all(path.stat().st_size <= 1_200 for path in kept)
