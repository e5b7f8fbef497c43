"""The command line of ``serve``, and what a losing candidate says; winning is in tests/integration/ownership."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from intercomd import candidate, settling
from intercomd.candidate import Options, UsageError, Won, parse, run
from intercomd.edges.ownership import outcomes
from intercomd.edges.ownership.reporting import Reporter
from tests.support.daemon import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for fd in (reading, writing):
        try:
            os.close(fd)
        except OSError:
            continue


@pytest.fixture(autouse=True)
def unsettled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the candidate would have done to this process."""
    calls: list[str] = []
    monkeypatch.setattr(settling, "detach", lambda: calls.append("detach"))
    monkeypatch.setattr(settling, "settle", lambda: calls.append("settle"))
    return calls


def test_the_plain_command() -> None:
    assert parse(["serve"]) == Options(is_detached=False)


def test_every_option_both_ways(pipe: tuple[int, int]) -> None:
    fd = pipe[1]
    os.set_inheritable(fd, True)
    expected = Options(idle_exit_s=0.05, report_fd=fd, limits="bench", is_detached=True)
    spaced = ["--idle-exit-s", "0.05", "--report-fd", str(fd), "--limits", "bench", "--detach"]
    assert parse(["serve", *spaced]) == expected
    joined = ["--detach", "--idle-exit-s=0.05", f"--report-fd={fd}", "--limits=bench"]
    assert parse(["serve", *joined]) == expected
    assert not os.get_inheritable(fd)


@pytest.mark.parametrize("path", ["/opt/their/broker.ts", "--report-fd", ""])
def test_the_path_of_somebody_elses_broker_is_ignored(path: str) -> None:
    assert parse(["serve", "--as-broker-command", path]) == Options(is_detached=False)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["list"],
        ["serve", "now"],
        ["serve", "--verbose"],
        ["serve", "--idle-exit-s"],
        ["serve", "--idle-exit-s", "soon"],
        ["serve", "--idle-exit-s", "-1"],
        ["serve", "--idle-exit-s", "inf"],
        ["serve", "--idle-exit-s", "nan"],
        ["serve", "--report-fd", "x"],
        ["serve", "--report-fd", "-1"],
        ["serve", "--report-fd", "٣"],
        ["serve", "--report-fd", "99999"],
        ["serve", "--report-fd", "9" * 40],
        ["serve", "--report-fd", "9" * 5000],
        ["serve", "--limits", "none"],
        ["serve", "--as-broker-command"],
    ],
)
def test_a_wrong_command_line_is_said_so(
    arguments: list[str], capsys: pytest.CaptureFixture[str], unsettled: list[str]
) -> None:
    with pytest.raises(UsageError):
        parse(arguments)
    assert run(arguments) == 2
    assert "usage: intercomd serve" in capsys.readouterr().err
    assert unsettled == []


def test_a_descriptor_that_is_no_pipe_is_refused(tmp_path: object) -> None:
    with open(f"{tmp_path}/file", "w", encoding="utf-8") as file, pytest.raises(UsageError, match="neither a pipe"):
        parse(["serve", "--report-fd", str(file.fileno())])


@pytest.mark.parametrize("fd", [0, 1, 2])
def test_a_standard_stream_is_no_report_pipe(fd: int, monkeypatch: pytest.MonkeyPatch, pipe: tuple[int, int]) -> None:
    """It is closed after the report, and a client's socket would take its number and hear what Python says there."""
    seen = os.fstat(pipe[1])
    monkeypatch.setattr(os, "fstat", lambda _fd: seen)
    with pytest.raises(UsageError, match="standard"):
        parse(["serve", "--report-fd", str(fd)])


def test_too_few_descriptors_are_said_before_anything_is_published(
    monkeypatch: pytest.MonkeyPatch, pipe: tuple[int, int]
) -> None:
    monkeypatch.setattr(candidate, "acquire", lambda _places, _prepare: pytest.fail("it took part"))
    monkeypatch.setattr(settling, "count_free_fds", lambda wanted: wanted - 1)
    assert run(["serve", "--report-fd", str(pipe[1])]) == 4
    said = json.loads(os.read(pipe[0], 4096))
    assert said["result"] == "error"
    assert "RLIMIT_NOFILE" in said["reason"]


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (outcomes.already("a broker listens"), 0),
        (outcomes.claimed("pid 7 holds the lock"), 1),
        (outcomes.claimed("pid 7 exists", is_doubtful=True), 1),
        (outcomes.uncertain("it is empty"), 3),
        (outcomes.failed("mode 0755"), 4),
    ],
)
def test_a_loser_reports_and_ends(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    pipe: tuple[int, int],
    outcome: outcomes.Outcome,
    status: int,
) -> None:
    monkeypatch.setattr(candidate, "acquire", lambda _places, _prepare: outcome)
    assert run(["serve", "--report-fd", str(pipe[1])]) == status
    line = json.loads(os.read(pipe[0], 4096))
    assert line["result"] == outcome.kind
    assert line["reason"] == outcome.reason
    assert line.get("doubtful", False) == outcome.is_doubtful
    assert capsys.readouterr().err == ""
    # Without a starter, a person reads it.
    assert run(["serve"]) == status
    assert capsys.readouterr().err == f"intercomd: {outcome.kind}: {outcome.reason}\n"


def test_invalid_places_are_an_error(monkeypatch: pytest.MonkeyPatch, pipe: tuple[int, int]) -> None:
    monkeypatch.setenv("PI_INTERCOM_RUNTIME_DIR", "relative")
    assert run(["serve", "--report-fd", str(pipe[1])]) == 2
    assert "PI_INTERCOM_RUNTIME_DIR" in json.loads(os.read(pipe[0], 4096))["reason"]


@pytest.mark.parametrize(("flags", "calls"), [([], ["settle"]), (["--detach"], ["detach", "settle"])])
def test_it_settles_before_it_takes_part(
    monkeypatch: pytest.MonkeyPatch, unsettled: list[str], flags: list[str], calls: list[str]
) -> None:
    def acquire(_places: object, _prepare: object) -> outcomes.Outcome:
        unsettled.append("acquire")
        return outcomes.already("")

    monkeypatch.setattr(candidate, "acquire", acquire)
    run(["serve", *flags])
    assert unsettled == [*calls, "acquire"]


def test_the_winner_gets_everything(monkeypatch: pytest.MonkeyPatch, pipe: tuple[int, int]) -> None:
    class Ownership:
        listening, left = "socket", False

        def leave(self) -> bool:
            self.left = True
            return True

    owned = Ownership()
    monkeypatch.setattr(candidate, "acquire", lambda _places, _prepare: owned)
    won = run(["serve", "--report-fd", str(pipe[1]), "--idle-exit-s", "3"])
    assert isinstance(won, Won)
    assert (won.ownership, won.listening, won.options.idle_exit_s) == (owned, "socket", 3.0)
    won.fail("ImportError: no module")
    assert json.loads(os.read(pipe[0], 4096)) == {"result": "error", "reason": "ImportError: no module"}
    assert owned.left


def test_a_report_is_sent_once_and_closes_the_pipe(pipe: tuple[int, int]) -> None:
    reporter = Reporter(pipe[1])
    reporter.ready()
    reporter.ready()
    assert not reporter.report("error")
    assert os.read(pipe[0], 4096) == b'{"result": "ready"}\n'
    assert os.read(pipe[0], 4096) == b""


def test_a_starter_that_is_gone_is_no_failure(pipe: tuple[int, int]) -> None:
    os.close(pipe[0])
    Reporter(pipe[1]).ready()


def test_a_reason_of_any_characters_stays_one_line(pipe: tuple[int, int]) -> None:
    Reporter(pipe[1]).report("error", "a\nb \ud83d 字")
    received = os.read(pipe[0], 4096)
    assert received.count(b"\n") == 1
    assert json.loads(received)["reason"] == "a\nb \ud83d 字"


def test_a_candidate_loads_nothing_heavy() -> None:
    """Most candidates of a storm lose: they pay for the standard library's light parts and nothing else."""
    code = (
        "import sys; import intercomd.candidate; own = ('libintercom', 'intercomd');"
        "print([m for m in sys.modules if m.split('.')[0] not in sys.stdlib_module_names and m.split('.')[0] not in own"
        " and m != '__main__'], {'asyncio', 'logging', 'subprocess', 'dataclasses', 'inspect', 'ssl', 'sqlite3',"
        " 'argparse', 'pathlib', 'tempfile', 'hashlib', 'ctypes'} & set(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-S", "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    assert loaded.stdout.strip() == "[] set()"
