"""Starting, stopping and finding the broker from the command line, and what is said when there is none."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from intercomctl.commands import broker as command
from libintercom.paths import find_places
from tests.support.ctl import Ctl
from tests.support.daemon import running_daemon, runtime_directory
from tests.support.scripted_broker import HELLO, ScriptedBroker
from tests.support.waiting import wait_until


def is_gone(pid):
    """Whether a process that we may not be the parent of has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] in ("Z", "X")
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("words", [["list"], ["status"], ["metrics"], ["broker", "start"]])
def test_a_command_starts_the_broker_when_none_runs_and_says_so(alone, words):
    ended = alone.run(*words)
    assert ended.status == 0
    assert ended.err.startswith("intercomctl: no broker was running; started intercomd ")
    assert ended.err.count("\n") == 1
    assert "running; started" not in alone.run(*words).err


def test_a_send_starts_the_broker_as_well(alone):
    ended = alone.run("send", "bob", "x", "--json")
    assert ended.status == 1
    assert ended.json["code"] == "not_found"
    assert "no broker was running; started" in ended.err


def test_a_join_starts_the_broker_as_well(alone):
    with alone.joined("ann") as ann:
        assert ann.events[0]["broker"]["program"] == "intercomd"


def test_start_says_whether_it_started_one(alone):
    first, second = alone.run("broker", "start", "--json").json, alone.run("broker", "start", "--json").json
    assert (first["state"], second["state"]) == ("started", "already_running")
    assert first["broker"]["pid"] == second["broker"]["pid"]
    text = alone.run("broker", "start").out
    assert text == f"intercomd {first['broker']['version']} (pid {first['broker']['pid']}): already running\n"


def test_stop_ends_the_broker_and_nothing_else(alone):
    pid = alone.run("broker", "start", "--json").json["broker"]["pid"]
    stopped = alone.run("broker", "stop", "--json")
    assert stopped.status == 0
    assert (stopped.json["state"], stopped.json["broker"]["pid"]) == ("stopped", pid)
    assert is_gone(pid)
    assert not os.path.lexists(f"{alone.directory}/broker.sock")


def test_stopping_nothing_is_done_already(alone):
    ended = alone.run("broker", "stop", "--json")
    assert (ended.status, ended.err) == (0, "")
    assert ended.json == {"version": 1, "state": "not_running", "broker": None}
    assert alone.run("broker", "stop").out == "intercomd: not running\n"
    assert not os.path.lexists(f"{alone.directory}/broker.sock")


def test_restart_leaves_another_broker(alone):
    started = alone.run("broker", "restart", "--json").json
    restarted = alone.run("broker", "restart", "--json").json
    assert (started["state"], restarted["state"]) == ("started", "restarted")
    assert started["broker"]["pid"] != restarted["broker"]["pid"]
    assert is_gone(started["broker"]["pid"])


@pytest.mark.parametrize("policy", ["never", "supervisor"])
def test_where_the_policy_forbids_it_nothing_is_started(alone, policy):
    forbidding = alone.having(PI_INTERCOM_START_POLICY=policy)
    for words in (["list"], ["broker", "start"], ["send", "bob", "x"]):
        ended = forbidding.run(*words)
        assert (ended.status, ended.out) == (4, "")
        assert "intercomd is not running" in ended.err
    shown = forbidding.run("send", "bob", "x", "--json")
    assert shown.status == 4
    assert (shown.json["outcome"], shown.json["code"]) == ("not_sent", "not_connected")
    shown = forbidding.run("list", "--json")
    assert shown.json["exitStatus"] == 4


def test_a_namespace_that_cannot_be_used_is_refused():
    ended = Ctl("relative/path").run("list")
    assert ended.status == 2
    assert "PI_INTERCOM_RUNTIME_DIR" in ended.err
    with runtime_directory() as directory:
        os.chmod(directory, 0o777)
        ended = Ctl(directory).run("list")
    assert ended.status == 4
    assert "refusing the runtime directory" in ended.err


# ------------------------------------------------------------------ who is stopped


def answering(pid):
    """A broker's end that says it is ``pid``, once for each time that it is asked."""

    def script(peer):
        peer.hear()
        peer.say(
            {"type": "registered", "sessionId": "pi-observer", "ext": 1, "observer": 1, "broker": {**HELLO, "pid": pid}}
        )
        while peer.hear():
            pass

    return script


@pytest.fixture
def bystander():
    """A process of ours that must never be signalled."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        assert process.poll() is None, "a process that is no broker was signalled"
        process.kill()


@pytest.mark.parametrize("record", [None, b"", b"nonsense\n", b"{pid}\n"])
def test_a_process_that_is_not_proven_to_be_the_broker_gets_no_signal(bystander, record):
    with runtime_directory() as directory:
        if record is not None:
            with open(f"{directory}/broker.pid", "wb") as file:
                file.write(record.replace(b"{pid}", str(bystander.pid).encode()))
        scripted = ScriptedBroker(f"{directory}/broker.sock", [answering(bystander.pid)])
        ended = Ctl(directory).run("broker", "stop")
        scripted.close()
    assert ended.status == 1
    assert "not stopping the broker: its record does not prove which process it is" in ended.err


def test_a_record_of_another_process_gets_no_signal(bystander):
    with running_daemon("--idle-exit-s", "600") as daemon:
        os.rename(daemon.socket_path, f"{daemon.socket_path}.aside")
        scripted = ScriptedBroker(daemon.socket_path, [answering(bystander.pid)])
        ended = Ctl(daemon.directory).run("broker", "stop")
        scripted.close()
        os.replace(f"{daemon.socket_path}.aside", daemon.socket_path)
        assert ended.status == 1
        assert f"it says that it is pid {bystander.pid}, and the record says pid {daemon.pid}" in ended.err
        assert daemon.is_running


def test_a_broker_that_does_not_say_who_it_is_gets_no_signal(bystander):
    def old(peer):
        peer.register(ext=False)
        while peer.hear():
            pass

    with runtime_directory() as directory:
        scripted = ScriptedBroker(f"{directory}/broker.sock", [old])
        ended = Ctl(directory).run("broker", "stop")
        scripted.close()
    assert ended.status == 1
    assert "it does not say who it is" in ended.err


def test_a_broker_that_does_not_end_is_left_alone(monkeypatch):
    monkeypatch.setattr(command, "STOP_DEADLINE_S", 0.2)
    with running_daemon("--idle-exit-s", "600") as daemon:
        monkeypatch.setenv("PI_INTERCOM_RUNTIME_DIR", daemon.directory)
        os.kill(daemon.pid, signal.SIGSTOP)
        with pytest.raises(command.StillRunning, match=f"pid {daemon.pid}"):
            command._end(find_places(), daemon.pid)
        assert daemon.is_running
        os.kill(daemon.pid, signal.SIGCONT)
        wait_until(lambda: not daemon.is_running, "the broker to end as it was told")


def test_without_process_handles_the_pid_is_watched(monkeypatch):
    monkeypatch.setattr(command, "STOP_DEADLINE_S", 0.2)
    assert not command._has_ended(os.getpid(), None)
    with subprocess.Popen(["true"]) as ended:
        pass
    with pytest.raises(ProcessLookupError):
        command._has_ended(ended.pid, None)


def test_json_of_a_failure_is_one_object(alone):
    ended = alone.having(PI_INTERCOM_START_POLICY="never").run("status", "--json")
    assert json.loads(ended.out)["version"] == 1
