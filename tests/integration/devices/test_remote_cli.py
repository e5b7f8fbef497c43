"""The one-file remote command by itself: fresh, on every Python of this machine, and what it answers to whom."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from remote import bundle
from tests.support.fleet import BUNDLE, Device, Recipient
from tests.support.interpreters import VERSIONS, interpreter
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

SENDER = {"id": "pi-1", "name": "web-build", "cwd": "/work/web"}
# What a Node caller writes.
ASK = {"version": 1, "command": "ask", "origin": "desk", "device": "laptop", "from": SENDER, "to": "api-fix"}
MESSAGE = {"text": "x", "messageId": "m"}


def test_it_is_fresh() -> None:
    assert BUNDLE.read_text(encoding="utf-8") == bundle.write(), "stale; run: make bundle"


def test_a_stale_one_is_found(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert bundle.main(["--check"]) == 0
    monkeypatch.setattr(bundle, "_TAIL", "other")
    assert bundle.main(["--check"]) == 1
    assert "stale" in capsys.readouterr().out


def test_it_cannot_start_a_broker_and_holds_nothing_else() -> None:
    names = bundle.modules()
    assert not {"libintercom.starting", "libintercom.launching", "libintercom.aio"} & set(names)
    assert not [name for name in names if name.split(".")[0] not in {"libintercom", "remote"}]


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Device]:
    with tempfile.TemporaryDirectory(prefix="icr-", dir="/tmp") as folder:
        device = Device(folder, "laptop")
        device.recipient("api-fix", accepts_asks=True)
        device.recipient("silent", answers=False)
        yield device
        device.close()


@pytest.fixture
def empty() -> Iterator[Device]:
    with tempfile.TemporaryDirectory(prefix="icr-", dir="/tmp") as folder:
        yield Device(folder, "empty")


def start(device: Device, python: str = sys.executable) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    words = [python, "-I", str(BUNDLE)]
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=device.environment, text=True)


def told(device: Device, request: Any, python: str = sys.executable) -> tuple[list[dict[str, Any]], int]:
    """What a request is answered with, its input closed behind it; the objects and the exit status."""
    with start(device, python) as command:
        out, err = command.communicate(request if isinstance(request, str) else json.dumps(request), timeout=20)
    assert not err
    return [json.loads(line) for line in out.splitlines() if line], command.returncode


@pytest.mark.parametrize("version", VERSIONS)
def test_it_runs_on_a_bare_python(laptop: Device, empty: Device, version: str) -> None:
    python = interpreter(version)
    if not python:
        pytest.skip(f"no Python {version} on this machine (INTERCOM_PYTHON{version.replace('.', '')} names one)")
    ((answer,), status) = told(empty, {"version": 1, "command": "list", "origin": "desk"}, python)
    assert (answer["version"], answer["sessions"], status) == (1, [], 0)
    ((answer,), status) = told(laptop, {"version": 1, "command": "list", "origin": "desk"}, python)
    assert [row["name"] for row in answer["sessions"]] == ["api-fix", "silent"]
    question = {**ASK, "message": {"text": "which?", "messageId": f"m-{version}"}, "timeoutMs": 5000}
    (receipt, reply), status = told(laptop, question, python)
    assert receipt["receipt"] == reply["receipt"] == {"id": f"m-{version}", "accepted": True, "delivered": True}
    assert (reply["reply"]["content"], reply["reply"]["replyTo"]) == ({"text": "answer to which?"}, f"m-{version}")
    ((answer,), _) = told(laptop, {"version": 1, "command": "check", "origin": "desk"}, python)
    assert answer["check"]["python"].startswith(f"{version}.")
    assert answer["check"]["broker"]["running"] is True


@pytest.mark.parametrize("version", ["3.6", "3.7", "3.8"])
def test_an_older_python_says_so(empty: Device, version: str) -> None:
    python = interpreter(version)
    if not python:
        pytest.skip(f"no Python {version} on this machine")
    ((answer,), status) = told(empty, "", python)
    assert ("older than 3.9" in answer["error"], answer["outcome"], status) == (True, "not_sent", 1)


WRONG = {
    "nothing": ("", "Invalid request: not JSON"),
    "a part": (json.dumps(ASK)[:-5], "Invalid request: not JSON"),
    "a list": ("[]", "Invalid request: it is not a JSON object."),
    "another version": ({"version": 2, "command": "list"}, "Unsupported version 2"),
    "no version": ({"command": "list"}, "Unsupported version None"),
    "an unknown command": ({"version": 1, "command": "reboot"}, 'Unsupported command "reboot".'),
    "no command": ({"version": 1}, 'Unsupported command "None".'),
    "no origin": ({"version": 1, "command": "list"}, "Invalid request: origin"),
    "no sender": ({**ASK, "from": 5, "message": MESSAGE}, "Invalid request: from"),
    "no message": (ASK, "Invalid request: message"),
    "a wrong timeout": (
        {**ASK, "message": MESSAGE, "timeoutMs": -1},
        "Invalid request: timeoutMs",
    ),
    "wrong attachments": (
        {**ASK, "message": {"text": "x", "messageId": "m", "attachments": 5}},
        "Invalid request: att",
    ),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG.keys())
def test_what_is_no_request_is_refused(laptop: Device, case: tuple[Any, str]) -> None:
    request, said = case
    ((answer,), status) = told(laptop, request)
    assert answer["error"].startswith(said), answer
    assert (answer["outcome"], status) == ("not_sent", 1)
    assert not [one for recipient in laptop.recipients for one in recipient.got if one.message.id == "m"]


def test_it_never_starts_a_broker(empty: Device) -> None:
    message = {**ASK, "command": "send", "message": MESSAGE}
    ((answer,), status) = told(empty, message)
    assert (answer["error"], status) == ("no Pi session is connected there", 1)
    assert os.listdir(empty.runtime) == []


def begin(laptop: Device, message_id: str, **members: Any) -> tuple[subprocess.Popen[str], Recipient]:
    """A question that waits, from a caller that holds its input."""
    silent = next(recipient for recipient in laptop.recipients if recipient.name == "silent")
    request = {**ASK, "to": "silent", "message": {"text": "?", "messageId": message_id}, "holdsInput": True, **members}
    command = start(laptop)
    assert command.stdin is not None
    command.stdin.write(json.dumps(request) + "\n")
    command.stdin.flush()
    wait_until(lambda: silent.has(message_id), "the question to arrive")
    return command, silent


def test_a_waiting_ask_shows_that_it_lives_and_an_overlapping_command_is_refused(laptop: Device) -> None:
    command, silent = begin(laptop, "m-over")
    assert command.stdout is not None
    assert json.loads(command.stdout.readline())["receipt"]["id"] == "m-over"
    assert [command.stdout.readline() for _ in range(2)] == ["\n", "\n"]
    ((answer,), status) = told(laptop, {**ASK, "command": "send", "message": {"text": "x", "messageId": "m-2"}})
    assert "Wait for it to finish" in answer["error"]
    assert (answer["outcome"], answer["code"], status) == ("not_sent", "overlapping", 1)
    other = {**ASK, "from": {**SENDER, "id": "pi-2"}, "message": {"text": "x", "messageId": "m-3"}}
    assert told(laptop, other)[1] == 0
    _end(command, silent, "m-over")


def _end(command: subprocess.Popen[str], silent: Recipient, message_id: str) -> None:
    out, _ = command.communicate(timeout=10)
    last = json.loads(out.splitlines()[-1])
    assert (last["outcome"], last["endedBy"], command.returncode) == ("accepted", "cancelled", 1)
    wait_until(lambda: silent.is_retired(message_id), "the question to be retired", 3)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_told_to_end_it_withdraws_its_question(laptop: Device, number: signal.Signals) -> None:
    command, silent = begin(laptop, f"m-{number}")
    command.send_signal(number)
    _end(command, silent, f"m-{number}")


def test_a_reader_that_is_gone_withdraws_the_question(laptop: Device) -> None:
    command, silent = begin(laptop, "m-pipe", holdsInput=False)
    assert command.stdout is not None
    command.stdout.close()
    wait_until(lambda: silent.is_retired("m-pipe"), "the question to be retired", 3)
    assert command.wait(5) == 1
    assert command.stdin is not None
    assert command.stderr is not None
    command.stdin.close()
    command.stderr.close()


CHECK = json.dumps({"version": 1, "command": "check", "origin": "desk"})


def checked(copy: Path, device: Device) -> str:
    words = [sys.executable, "-I", copy]
    ended = subprocess.run(words, input=CHECK, capture_output=True, text=True, check=True, env=device.environment)
    assert not ended.stderr
    return json.loads(ended.stdout)["check"]["version"]


def test_compiled_modules_are_kept_and_never_trusted_beyond_their_file(tmp_path: Path, empty: Device) -> None:
    copy = tmp_path / "remote_cli.py"
    text = BUNDLE.read_text(encoding="utf-8")
    copy.write_text(text, encoding="utf-8")
    version = checked(copy, empty)
    (kept,) = (tmp_path / "__pycache__").iterdir()
    whole = kept.read_bytes()
    assert checked(copy, empty) == version
    for damage in (b"", whole[:30], whole[:-9], whole[:40] + b"\xff" * 99):
        kept.write_bytes(damage)
        assert checked(copy, empty) == version
    # Another file in its place: what was kept of the first is not run.
    copy.write_text(text.replace(f'__version__ = "{version}"', '__version__ = "9.9.99"'), encoding="utf-8")
    assert checked(copy, empty) == "9.9.99"
    assert [path.name for path in (tmp_path / "__pycache__").iterdir()] == [kept.name]


def test_a_place_that_cannot_be_written_costs_nothing_else(tmp_path: Path, empty: Device) -> None:
    copy = tmp_path / "remote_cli.py"
    copy.write_bytes(BUNDLE.read_bytes())
    (tmp_path / "__pycache__").write_text("no folder")
    assert checked(copy, empty)


def test_a_traceback_names_our_files(tmp_path: Path) -> None:
    text = BUNDLE.read_text(encoding="utf-8").replace("def main() -> int:", "def main() -> int:\n    boom", 1)
    broken = tmp_path / "broken.py"
    broken.write_text(text, encoding="utf-8")
    ended = subprocess.run([sys.executable, "-I", broken], capture_output=True, text=True, check=False, cwd=tmp_path)
    source = Path(bundle.ROOT, "remote", "entry.py").read_text(encoding="utf-8").splitlines()
    line = source.index("def main() -> int:") + 2
    assert f'File "remote/entry.py", line {line}, in main' in ended.stderr


def test_the_console_script_runs_the_packaged_copy(laptop: Device) -> None:
    script = Path(sys.executable).with_name("intercom-remote")
    request = json.dumps({"version": 1, "command": "check", "origin": "desk"})
    ended = subprocess.run([script], input=request, capture_output=True, text=True, check=True, env=laptop.environment)
    assert json.loads(ended.stdout)["check"]["program"] == "intercom-remote"


def test_inventory_registers_nowhere_unless_asked(laptop: Device, empty: Device) -> None:
    ((answer,), _) = told(laptop, {"version": 1, "command": "inventory", "origin": "desk"})
    found = answer["inventory"]
    assert (found["shared"]["state"], found["peers"]) == ("connected", None)
    ((answer,), _) = told(laptop, {"version": 1, "command": "inventory", "origin": "desk", "connect": True})
    assert len(answer["inventory"]["peers"]) == 2
    ((answer,), _) = told(empty, {"version": 1, "command": "inventory", "origin": "desk", "connect": True})
    assert (answer["inventory"]["shared"]["state"], answer["inventory"]["peers"]) == ("absent", None)
