"""A broker's life: starting, being the only one, idle exit, leaving in order, settings and signals."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from libintercom.ownership.records import read_owner
from libintercom.version import __version__
from tests.support import sayings as say
from tests.support.daemon import ROOT, Daemon, running_daemon, runtime_directory
from tests.support.raw_peer import RawPeer
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(*arguments: str, directory: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if directory:
        environment["PI_INTERCOM_RUNTIME_DIR"] = directory
    command: Sequence[str] = [sys.executable, "-m", "intercomd", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=30)


def logged(daemon: Daemon, what: str) -> list[dict[str, object]]:
    """The log's records of one kind, once there is one."""
    return wait_until(lambda: [r for r in daemon.log_records() if r["what"] == what], f"{what!r} in the log")


# -- starting ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_it_starts_says_so_and_serves(loop: str) -> None:
    with running_daemon("--idle-exit-s", "60", environment={"PI_INTERCOM_LOOP": loop}) as daemon:
        assert daemon.report == {"result": "ready"}
        assert daemon.stdout() == f"Intercom broker started (pid: {daemon.pid})\n"
        with RawPeer(daemon.socket_path) as ann, RawPeer(daemon.socket_path) as bob:
            ann.join(say.register("ann"))
            bob.join(say.register("bob"))
            ann.say(say.send("bob", "m1", "hello"))
            assert ann.hear() == {"type": "delivered", "messageId": "m1"}
            assert bob.hear()["message"] == say.message("m1", "hello")
        assert logged(daemon, "serving")[0]["loop"] == loop


def test_its_files_are_private_and_name_it(daemon: Daemon) -> None:
    seen = os.lstat(daemon.socket_path)
    assert stat.S_ISSOCK(seen.st_mode)
    assert stat.S_IMODE(seen.st_mode) == 0o600
    record = read_owner(Path(f"{daemon.directory}/broker.pid").read_bytes())
    assert record.pid == daemon.pid
    assert not os.path.lexists(f"{daemon.directory}/broker.spawn.lock")


def test_an_extended_client_hears_who_serves(daemon: Daemon) -> None:
    with RawPeer(daemon.socket_path) as ann:
        hello = ann.join(say.register("ann", ext=1))["broker"]
    assert (hello["program"], hello["version"], hello["pid"]) == ("intercomd", __version__, daemon.pid)
    assert hello["starter"] == "command line"
    record = read_owner(Path(f"{daemon.directory}/broker.pid").read_bytes())
    assert record.identity is not None
    assert hello["startIdentity"]["startTicks"] == record.identity.start_ticks


def test_a_second_broker_says_already_and_leaves_the_first_alone(daemon: Daemon) -> None:
    second = Daemon(daemon.directory, "--idle-exit-s", "60")
    report = second.read_report()
    assert report["result"] == "already"
    assert second.wait_exit() == 0
    with RawPeer(daemon.socket_path) as ann:
        ann.join(say.register("ann"))


def test_the_path_of_another_broker_program_is_accepted_and_ignored() -> None:
    with running_daemon("--idle-exit-s", "60", "--as-broker-command", "/some/broker.ts") as daemon:
        assert daemon.is_running


def test_settings_that_cannot_be_used_end_the_start_and_leave_nothing() -> None:
    with runtime_directory() as directory:
        daemon = Daemon(directory, environment={"PI_INTERCOM_MAX_SESSIONS": "none of it"})
        report = daemon.read_report()
        assert report["result"] == "error"
        assert "PI_INTERCOM_MAX_SESSIONS" in report["reason"]
        assert daemon.wait_exit() == 2
        assert "PI_INTERCOM_MAX_SESSIONS" in daemon.stderr_tail()
        assert not os.path.lexists(daemon.socket_path)


def test_registrations_are_answered_while_the_log_is_not_loaded_yet(daemon: Daemon) -> None:
    """The first client of a starting broker must not wait for what only the log needs."""
    with RawPeer(daemon.socket_path) as ann:
        ann.join(say.register("ann"))
    assert logged(daemon, "serving")


# -- what it is started with -------------------------------------------------------------------------


def under_shell(script: str, directory: str) -> subprocess.CompletedProcess[str]:
    """Run the command that a shell script calls ``$@``."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PI_INTERCOM_RUNTIME_DIR": directory}
    command = ["sh", "-c", script, "sh", sys.executable, "-m", "intercomd"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=30)


def held_by(pid: int) -> dict[int, str]:
    return {int(fd): os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_while_it_starts_is_answered_once_it_serves(loop: str, number: signal.Signals) -> None:
    """From the moment its record can be read somebody may signal it; loading the event loop takes longer than that."""
    with runtime_directory() as directory:
        daemon = Daemon(directory, "--idle-exit-s", "60", environment={"PI_INTERCOM_LOOP": loop})
        wait_until(lambda: os.path.exists(f"{directory}/broker.pid"), "the record")
        daemon.process.send_signal(number)
        assert daemon.read_report() in ({"result": "ready"}, {})
        assert daemon.is_running or number == signal.SIGTERM
        assert daemon.stop() == 0


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_closed_standard_streams_are_no_place_for_its_files(loop: str) -> None:
    closing = ("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")
    with running_daemon("--idle-exit-s", "60", environment={"PI_INTERCOM_LOOP": loop}, prefix=closing) as daemon:
        held = held_by(daemon.pid)
        assert [held[fd] for fd in (0, 1, 2)] == [os.devnull] * 3
        assert logged(daemon, "serving")
        daemon.stop()
        assert daemon.process.returncode == 0
        assert not [record for record in daemon.log_records() if record["what"] == "bug"]


@pytest.mark.parametrize(
    ("arguments", "status"), [("serve --nonsense", 2), ("config --json", 0), ("--version", 0), ("", 2), ("nonsense", 2)]
)
@pytest.mark.parametrize("streams", ["<&- >&- 2>&-", ">/dev/full"])
def test_streams_that_take_nothing_change_no_exit_status(arguments: str, status: int, streams: str) -> None:
    with runtime_directory() as directory:
        said = under_shell(f'"$@" {arguments} {streams}', directory)
    is_lost = status == 0 and streams == ">/dev/full"
    assert said.returncode == (1 if is_lost else status), said.stderr
    assert "Traceback" not in said.stderr


def test_a_reader_that_has_enough_is_no_bug() -> None:
    with runtime_directory() as directory:
        said = under_shell('{ sleep 1; "$@" config --json; echo "status $?" >&2; } | true', directory)
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize("limit", [*range(6, 18), 20, 24, 32, 40, 48])
def test_few_descriptors_are_enough_or_a_clear_refusal(limit: int) -> None:
    with runtime_directory() as directory:
        said = under_shell(f'ulimit -n {limit}; exec "$@" serve --idle-exit-s 0.1', directory)
        left = [name for name in ("broker.sock", "broker.pid", "broker.spawn.lock") if name in os.listdir(directory)]
        assert left == []
    assert said.returncode in (0, 4), said.stderr
    assert "Traceback" not in said.stderr
    assert said.returncode == 0 or "RLIMIT_NOFILE" in said.stderr


# -- leaving -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(daemon: Daemon, number: signal.Signals) -> None:
    with RawPeer(daemon.socket_path) as ann, RawPeer(daemon.socket_path) as bob:
        ann.join(say.register("ann"))
        bob.join(say.register("bob", status="idle", acceptsAsks=True))
        ann.say(say.replace("bob", "r1", "thread"))
        assert ann.hear()["type"] == "delivery_queued"
        daemon.process.send_signal(number)
        # What was staged goes out first, then everybody hears the end.
        assert bob.hear()["message"]["id"] == "r1"
        assert bob.hears_end()
        assert ann.hears_end()
    assert daemon.stop() == 0
    assert [record["what"] for record in daemon.log_records()][-2:] == ["stopping", "exiting"]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_that_come_until_it_is_gone_change_nothing(loop: str, number: signal.Signals) -> None:
    with running_daemon("--idle-exit-s", "60", environment={"PI_INTERCOM_LOOP": loop}) as daemon:
        daemon.process.send_signal(signal.SIGTERM)

        def has_gone() -> bool:
            daemon.process.send_signal(number)
            return not daemon.is_running

        wait_until(has_gone, "the end")
        assert daemon.wait_exit() == 0
        assert daemon.stderr_tail() == ""


def test_who_comes_while_it_leaves_is_sent_away_and_finds_the_next(daemon: Daemon) -> None:
    ended = registered = 0
    with running_daemon("--idle-exit-s", "60") as other:
        other.process.send_signal(signal.SIGTERM)
        while other.is_running:
            try:
                with RawPeer(other.socket_path) as peer:
                    peer.say(say.register("ann"))
                    if peer.hears_end():
                        ended += 1
                    else:
                        registered += 1
            except (FileNotFoundError, ConnectionRefusedError, BrokenPipeError, ConnectionResetError):
                ended += 1
        assert other.wait_exit() == 0
    assert ended > 0


def test_it_leaves_when_nobody_ever_came() -> None:
    start = time.monotonic()
    with running_daemon("--idle-exit-s", "0.5") as daemon:
        assert daemon.wait_exit() == 0
        assert time.monotonic() - start >= 0.5
        assert daemon.log_records()[-1]["reason"] == "idle"


def test_it_stays_while_a_session_is_there_and_leaves_after_the_last() -> None:
    with running_daemon("--idle-exit-s", "0.3") as daemon:
        with RawPeer(daemon.socket_path) as ann:
            ann.join(say.register("ann"))
            # An idle broker would be gone in half of this time.
            with pytest.raises(AssertionError, match="waited"):
                daemon.wait_exit(0.8)
        assert daemon.wait_exit() == 0


def test_a_connection_that_never_registers_does_not_keep_it() -> None:
    with running_daemon("--idle-exit-s", "0.3", environment={"PI_INTERCOM_REGISTER_TIMEOUT_S": "0.6"}) as daemon:
        with RawPeer(daemon.socket_path) as silent:
            assert silent.hears_end()
        assert daemon.wait_exit() == 0


# -- staying the owner -------------------------------------------------------------------------------


def test_a_self_check_finds_everything_in_its_place(daemon: Daemon) -> None:
    before = os.lstat(daemon.socket_path).st_ino
    daemon.process.send_signal(signal.SIGUSR1)
    with RawPeer(daemon.socket_path) as ann:
        ann.join(say.register("ann"))
    assert os.lstat(daemon.socket_path).st_ino == before
    assert not any(record["what"] == "self-check" for record in daemon.log_records())


def test_a_removed_socket_is_published_again(daemon: Daemon) -> None:
    with RawPeer(daemon.socket_path) as ann:
        ann.join(say.register("ann"))
        os.unlink(daemon.socket_path)
        daemon.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: os.path.lexists(daemon.socket_path), "the socket to be back")
        with RawPeer(daemon.socket_path) as bob:
            bob.join(say.register("bob"))
            bob.say(say.send("ann", "m1"))
            assert bob.hear()["type"] == "delivered"
        assert ann.hear()["message"]["id"] == "m1"
    assert logged(daemon, "published again")


def test_a_foreign_listener_at_the_path_ends_it_and_stays(daemon: Daemon) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        os.unlink(daemon.socket_path)
        other.bind(daemon.socket_path)
        other.listen(8)
        taken = os.lstat(daemon.socket_path).st_ino
        daemon.process.send_signal(signal.SIGUSR1)
        assert daemon.wait_exit(15) == 0
        assert os.lstat(daemon.socket_path).st_ino == taken
    os.unlink(daemon.socket_path)


def test_settings_are_read_again(daemon: Daemon) -> None:
    daemon.process.send_signal(signal.SIGHUP)
    (record,) = logged(daemon, "settings reloaded")
    assert (record["applied"], record["after_restart"]) == ([], [])


def test_reloaded_settings_are_compared_with_what_is_in_force() -> None:
    """A second look at the same settings changes nothing more."""
    # Its own files belong to this user; the program that is run instead reads one of the test's.
    code = (
        "import os, sys; from libintercom.paths import Places;"
        "Places.settings_files = property(lambda places: (f'{places.runtime_dir}/config.json',));"
        "from intercomd.__main__ import main; sys.exit(main())"
    )
    launch = ("sh", "-c", 'shift 3; exec "$0" -c "$CODE" "$@"', sys.executable)
    levels = ["debug", "debug", "info", "info"]
    with running_daemon("--idle-exit-s", "60", environment={"CODE": code}, prefix=launch) as daemon:
        for number, level in enumerate(levels, start=1):
            Path(f"{daemon.directory}/config.json").write_text(json.dumps({"logLevel": level}))
            daemon.process.send_signal(signal.SIGHUP)
            wait_until(lambda: len(logged(daemon, "settings reloaded")) == number, "the reload")  # noqa: B023 - at once
        applied = [record["applied"] for record in logged(daemon, "settings reloaded")]
    assert applied == [["log_level"], [], ["log_level"], []]


def test_it_has_no_children(daemon: Daemon) -> None:
    with RawPeer(daemon.socket_path) as ann:
        ann.join(say.register("ann"))
    listed = Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children").read_text()
    assert listed.split() == []


# -- other commands ----------------------------------------------------------------------------------


def test_config_shows_every_setting_with_its_source() -> None:
    said = run("config", "--json")
    assert said.returncode == 0, said.stderr
    shown = json.loads(said.stdout)
    assert shown["version"] == 1
    assert {"value", "source"} == set(shown["settings"]["maxSessions"])


def test_version_and_help() -> None:
    assert run("--version").stdout == f"intercomd {__version__}\n"
    helped = run("--help")
    assert helped.returncode == 0
    for words in ("serve", "--idle-exit-s", "--report-fd", "exit statuses", "SIGUSR1"):
        assert words in helped.stdout
    assert run("serve", "--help").stdout == helped.stdout


@pytest.mark.parametrize(
    "arguments", [(), ("nonsense",), ("config",), ("serve", "--nonsense"), ("serve", "--idle-exit-s", "x")]
)
def test_a_wrong_command_line_is_usage(arguments: tuple[str, ...]) -> None:
    said = run(*arguments)
    assert said.returncode == 2
    assert "intercomd" in said.stderr
    assert said.stdout == ""


def test_an_unsafe_directory_is_refused() -> None:
    with runtime_directory() as directory:
        Path(directory).chmod(0o755)
        said = run("serve", directory=directory)
        assert said.returncode == 4
        assert directory in said.stderr
        assert os.listdir(directory) == []
