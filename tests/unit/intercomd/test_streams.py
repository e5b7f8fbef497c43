"""Standard streams that are closed, full or unread; closed ones of a real program are in tests/integration/daemon."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from intercomd.streams import complain, open_streams, show

if TYPE_CHECKING:
    import pytest


class Full:
    """A stream on a full disk."""

    def write(self, _text: str) -> int:
        raise OSError(28, "No space left on device")


def test_open_streams_stay_as_they_are() -> None:
    before = (sys.stdout, sys.stderr, sorted(os.listdir("/proc/self/fd")))
    open_streams()
    assert (sys.stdout, sys.stderr, sorted(os.listdir("/proc/self/fd"))) == before


def test_a_result_goes_to_stdout_and_a_complaint_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert show("a result\n") == 0
    complain("a complaint\n")
    assert capsys.readouterr() == ("a result\n", "a complaint\n")


def test_a_result_that_nobody_gets_is_a_failure_that_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", Full())
    assert show("a result\n") == 1
    assert capsys.readouterr().err == "intercomd: stdout: No space left on device\n"
    monkeypatch.setattr(sys, "stderr", Full())
    assert show("a result\n") == 1


def test_no_descriptor_for_a_closed_stream_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: str, _flags: int) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "open", refuse)
    open_streams()
