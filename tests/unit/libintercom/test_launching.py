"""What a candidate is launched with: command line, environment; and what its answers are read as."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

import pytest

from libintercom import launching
from libintercom.errors import InvalidConfiguration, NotStarted
from libintercom.launching import Report, clean_environment, find_command, parse_report, read_tail
from libintercom.paths import find_places
from libintercom.platforms import ANDROID, LINUX

if TYPE_CHECKING:
    from pathlib import Path

SOCKET = "/r/broker.sock"


def program(path: Path) -> Path:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_broker_beside_this_interpreter_is_run_isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    program(tmp_path / "intercomd")
    # The link is not resolved: it leads out of a virtual environment.
    assert find_command("", SOCKET) == [str(tmp_path / "python"), "-I", "-m", "intercomd", "serve"]


def test_an_old_interpreter_runs_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(sys, "version_info", (3, 9, 18))
    script = program(tmp_path / "intercomd")
    assert find_command("", SOCKET) == [str(script), "serve"]


@pytest.mark.parametrize("executable", ["", "/nonexistent/bin/python"])
def test_nothing_beside_is_said_so(monkeypatch: pytest.MonkeyPatch, executable: str) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(NotStarted, match="no intercomd stands beside"):
        find_command("", SOCKET)


@pytest.mark.parametrize("variable", ["PYTHONEXECUTABLE", "__PYVENV_LAUNCHER__"])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_variable_does_not_choose_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, is_there: bool
) -> None:
    """Python believes it from 3.11 on; whatever stands beside that program is somebody else's."""
    program(tmp_path / "intercomd")
    if is_there:
        program(tmp_path / "python")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv(variable, str(tmp_path / "python"))
    with pytest.raises(NotStarted, match=f"was named by {variable} alone, and no executable is configured"):
        find_command("", SOCKET)
    assert find_command(str(program(tmp_path / "other")), SOCKET) == [str(tmp_path / "other"), "serve"]


def test_a_variable_that_tells_the_truth_is_no_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    program(tmp_path / "intercomd")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PYTHONEXECUTABLE", str(tmp_path / "python"))
    assert find_command("", SOCKET)[0] == str(tmp_path / "python")


def test_where_no_system_tells_which_program_runs_the_variable_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """macOS, whose framework builds set it themselves."""
    monkeypatch.setattr(launching, "_RUNNING_PROGRAM", str(tmp_path / "none"))
    program(tmp_path / "intercomd")
    monkeypatch.setattr(sys, "executable", str(program(tmp_path / "python")))
    monkeypatch.setenv("__PYVENV_LAUNCHER__", sys.executable)
    assert find_command("", SOCKET)[0] == sys.executable


def test_a_configured_executable_wins(tmp_path: Path) -> None:
    assert find_command(str(program(tmp_path / "other")), SOCKET) == [str(tmp_path / "other"), "serve"]


@pytest.mark.parametrize("executable", ["intercomd", "./intercomd", "/nonexistent/intercomd", "/etc/passwd", "/etc"])
def test_a_configured_executable_must_be_a_program(executable: str) -> None:
    with pytest.raises(InvalidConfiguration, match="executable"):
        find_command(executable, SOCKET)


AGENT = {
    "HOME": "/home/x",
    "PATH": "/evil/bin",
    "PYTHONPATH": "/evil",
    "PYTHONSTARTUP": "/evil.py",
    "LD_PRELOAD": "/evil.so",
    "LD_LIBRARY_PATH": "/evil",
    "DYLD_INSERT_LIBRARIES": "/evil.dylib",
    "ANTHROPIC_API_KEY": "secret",
    "NOTIFY_SOCKET": "/run/x",
    "LISTEN_FDS": "1",
    "TMPDIR": "/agent/tmp",
    "XDG_STATE_HOME": "/agent/state",
    "PI_CODING_AGENT_DIR": "/agent",
    "INTERCOM_NATIVE_SESSION_ID": "me",
    "PI_SUBAGENT_INTERCOM_SESSION_NAME": "me",
    "PI_INTERCOM_ROOT_SESSION_ID": "main",
    "PI_INTERCOM_PARENT_SESSION_ID": "main",
    "PI_INTERCOM_STABLE_ID": "me",
    "PI_INTERCOM_IDLE_EXIT_S": "9",
    "PI_INTERCOM_RUNTIME_DIR": "/r",
}


def test_the_environment_is_a_short_list() -> None:
    cleaned = clean_environment(AGENT, LINUX)
    assert set(cleaned) == {
        "LANG",
        "PATH",
        "MALLOC_MMAP_THRESHOLD_",
        "MALLOC_TRIM_THRESHOLD_",
        "MALLOC_TOP_PAD_",
        "PI_INTERCOM_IDLE_EXIT_S",
        "PI_INTERCOM_RUNTIME_DIR",
    }
    assert cleaned["PATH"] == "/usr/local/bin:/usr/bin:/bin"
    assert not any("evil" in value or "secret" in value for value in cleaned.values())


def test_androids_programs_find_their_system() -> None:
    termux = {**AGENT, "PREFIX": "/data/usr", "ANDROID_ROOT": "/system"}
    cleaned = clean_environment(termux, ANDROID)
    assert (cleaned["PREFIX"], cleaned["ANDROID_ROOT"], cleaned["TMPDIR"]) == ("/data/usr", "/system", "/agent/tmp")
    assert cleaned["PATH"].startswith("/data/usr/bin:")
    assert "LD_PRELOAD" not in cleaned
    assert "PREFIX" not in clean_environment(termux, LINUX)


def test_the_broker_is_led_to_exactly_these_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_INTERCOM_RUNTIME_DIR", "/somewhere/else")
    override = find_places({"PI_INTERCOM_RUNTIME_DIR": "/r/run"})
    assert launching._environment_for(override)["PI_INTERCOM_RUNTIME_DIR"] == "/r/run"
    assert "PI_INTERCOM_RUNTIME_DIR" not in launching._environment_for(find_places({}))


@pytest.mark.parametrize(
    ("line", "report"),
    [
        (b'{"result":"ready"}', ("ready", "", False)),
        (b'{"result":"claimed","reason":"why","doubtful":true}', ("claimed", "why", True)),
        (b'{"result":"error","reason":7,"more":1}', ("error", "", False)),
        (b'{"result":"splendid"}', None),
        (b'["ready"]', None),
        (b"ready", None),
        (b"", None),
        (b"\xff", None),
    ],
)
def test_reports(line: bytes, report: tuple[str, str, bool] | None) -> None:
    expected = report and Report(result=report[0], reason=report[1], is_doubtful=report[2])
    assert parse_report(line) == expected


def read_from_pipe(*chunks: bytes, is_closed: bool, timeout_s: float = 5.0) -> bytes | None:
    reading, writing = os.pipe()
    try:
        for chunk in chunks:
            os.write(writing, chunk)
        if is_closed:
            os.close(writing)
        return launching._read_line(reading, time.monotonic() + timeout_s)
    finally:
        os.close(reading)
        if not is_closed:
            os.close(writing)


def test_a_line_is_read_while_the_pipe_stays_open() -> None:
    assert read_from_pipe(b'{"result":', b'"ready"}\nmore', is_closed=False) == b'{"result":"ready"}'


def test_the_end_without_a_line_is_a_crash_and_silence_is_not() -> None:
    assert read_from_pipe(is_closed=True) == b""
    assert read_from_pipe(b"Traceback", is_closed=True) == b"Traceback"
    assert read_from_pipe(b"half", is_closed=False, timeout_s=0.01) is None
    assert read_from_pipe(is_closed=False, timeout_s=-1.0) is None


def test_a_line_without_end_is_given_up() -> None:
    assert read_from_pipe(b"x" * 9000, is_closed=False) is not None


def test_last_words_are_short_and_printable(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"earlier\n" + b"x" * 5000 + b"\nTraceback\n\n  \x1b[31mline\x1b[0m\xff\nImportError: no \x07\n")
    fd = os.open(path, os.O_RDWR)
    try:
        assert read_tail(fd, len(b"earlier\n")) == "Traceback | ?[31mline?[0m\ufffd | ImportError: no ?"
        assert read_tail(fd, os.fstat(fd).st_size) == ""
    finally:
        os.close(fd)


@pytest.mark.parametrize(("ending", "said"), [(None, ""), (0, ""), (1, " (status 1)"), (-9, " (signal 9)")])
def test_a_crash_is_described(tmp_path: Path, ending: int | None, said: str) -> None:
    fd = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    try:
        os.write(fd, b"ImportError: no module\n")
        expected = f"a candidate ended without a report{said}; it said last: ImportError: no module"
        assert launching._describe_crash(ending, fd, 0) == expected
        assert launching._describe_crash(ending, fd, 999) == f"a candidate ended without a report{said}"
    finally:
        os.close(fd)
