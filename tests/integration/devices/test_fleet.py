"""Several devices: installing, checking, the Node command, many at once, names, and who may."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.ctl import PROGRAM, Ctl, Ended
from tests.support.fleet import Fleet, fleet, wait_gone
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.ssh_server import Login

pytestmark = pytest.mark.needs("ssh")


@pytest.fixture(scope="module")
def shared() -> Iterator[Fleet]:
    with fleet("laptop", "phone", "old-box") as made:
        made.devices["laptop"].recipient("api-fix")
        yield made


@pytest.fixture
def devices(shared: Fleet) -> Iterator[Fleet]:
    yield shared
    shared.server.scripts.clear()
    shared.configure("desk", *shared.devices)
    for device in shared.devices.values():
        device.install()
    wait_gone("ssh")


def test_the_devices_are_listed_without_contacting_them(devices: Fleet) -> None:
    before = devices.server.connections
    assert devices.ctl().run("device", "list").out == "desk (this device)\nlaptop\nphone\nold-box\n"
    shown = devices.ctl().run("device", "list", "--json").json
    assert (shown["device"], shown["otherDevices"]) == ("desk", ["laptop", "phone", "old-box"])
    assert devices.server.connections == before


def test_without_settings_each_command_names_file_and_keys(devices: Fleet) -> None:
    devices.settings.write_text("{}")
    for words in (
        ("list", "--device", "all"),
        ("device", "list"),
        ("device", "check"),
        ("device", "install", "laptop"),
    ):
        ended = devices.ctl().run(*words)
        assert ended.status == 1
        assert all(word in ended.err for word in ('"device"', '"otherDevices"', str(devices.settings)))
    # Then a target with an @ is the name of a local session.
    assert "there is no" not in devices.ctl().run("send", "api@laptop", "x").err


def test_broken_settings_are_an_error_and_no_default(devices: Fleet) -> None:
    devices.settings.write_text('{"device": "desk", "otherDevices": ["-oProxyCommand=touch"]}')
    for words in (("list", "--device", "all"), ("send", "api-fix@laptop", "x"), ("device", "check")):
        ended = devices.ctl().run(*words)
        assert (ended.status, "otherDevices[0]" in ended.err) == (2, True)


def test_installing_makes_a_device_answer(devices: Fleet) -> None:
    device, ctl = devices.devices["laptop"], devices.ctl()
    device.uninstall()
    assert ctl.run("device", "check", "laptop").out == (
        "laptop: not listed: its intercom has no cross-device command; update intercom there\n"
    )
    first = ctl.run("device", "install", "LAPTOP")
    assert (first.status, "it is new" in first.out) == (0, True)
    assert "already the same" in ctl.run("device", "install", "laptop").out
    checked = ctl.run("device", "check", "laptop")
    assert (checked.status, "; its broker runs (version " in checked.out) == (0, True)
    assert "Not installed on closed: " in ctl_with_closed(devices)


def ctl_with_closed(devices: Fleet) -> str:
    devices.add_host("closed", "Port 1")
    devices.configure("desk", "closed")
    ended = devices.ctl().run("device", "install", "closed")
    assert ended.status == 4
    return ended.err


def test_a_check_says_who_answers_and_whether_a_broker_runs(devices: Fleet) -> None:
    devices.devices["old-box"].install_node()
    ended = devices.ctl().run("device", "check", "--json")
    assert ended.status == 4
    laptop, phone, old = ended.json["devices"]
    assert (laptop["command"], laptop["check"]["broker"]["running"]) == ("intercom-remote", True)
    assert (phone["reached"], phone["check"]["broker"]) == (True, None)
    assert (old["command"], old["reached"], old["check"]) == ("node", True, None)


def test_the_node_command_is_reached(devices: Fleet) -> None:
    devices.devices["old-box"].install_node()
    ctl = devices.ctl()
    assert "• api-fix@old-box (pi-01234@old-box)" in ctl.run("list", "--device", "old-box").out
    assert ctl.run("send", "api-fix@old-box", "x").status == 0
    assert ctl.run("ask", "api-fix@old-box", "which?").out == "**Reply from api-fix@old-box:**\nanswer to which?\n"
    refused = ctl.run("send", "nobody@old-box", "x")
    assert (refused.status, "was not delivered" in refused.err) == (1, True)


def test_a_local_session_of_that_very_name_is_not_meant(devices: Fleet) -> None:
    before = len(devices.devices["laptop"].recipients[0].got)
    ctl = devices.ctl(PI_INTERCOM_IDLE_EXIT_S="30")
    with ctl.joined("api-fix@laptop") as local:
        ctl.run("send", "api-fix@laptop", "x")
        wait_until(lambda: len(devices.devices["laptop"].recipients[0].got) == before + 1, "the message to arrive")
        del local
    ctl.run("broker", "stop")


def test_a_child_reaches_no_device(devices: Fleet) -> None:
    before = devices.server.connections
    child = devices.ctl(PI_INTERCOM_ROOT_SESSION_ID="main-1", PI_INTERCOM_PARENT_SESSION_ID="main-1")
    for words in (("list", "--device", "all"), ("send", "api-fix@laptop", "x"), ("ask", "api-fix@laptop", "x")):
        ended = child.run(*words)
        assert (ended.status, "Ask your main" in ended.err) == (1, True), ended
    assert devices.server.connections == before


@pytest.mark.parametrize("words", [("--scope", "project"), ("--children",)])
def test_options_of_a_local_list_do_not_go_with_a_device(devices: Fleet, words: tuple[str, ...]) -> None:
    ended = devices.ctl().run("list", "--device", "laptop", *words)
    assert (ended.status, "cannot be combined with --device" in ended.err) == (2, True)


def test_without_a_device_none_is_contacted(devices: Fleet) -> None:
    before = devices.server.connections
    ctl = devices.ctl(PI_INTERCOM_IDLE_EXIT_S="30")
    ctl.run("list")
    ctl.run("send", "api-fix", "x")
    ctl.run("broker", "stop")
    assert devices.server.connections == before


def test_a_wait_is_shown_on_a_terminal_only(devices: Fleet) -> None:
    devices.devices["laptop"].recipient("slow", answers=False)
    words = ("ask", "slow@laptop", "which?", "--timeout", "2")
    shown = devices.ctl().run_at_terminal(*words).out
    assert "asked slow@laptop; waiting for the reply, 1 s of 2 s" in shown
    piped = devices.ctl().run(*words)
    assert (piped.status, "waiting" in piped.out + piped.err) == (5, False)


@pytest.mark.parametrize(
    "words", [("list", "--device", "laptop"), ("send", "api-fix@laptop", "x"), ("device", "check")]
)
def test_an_interrupt_ends_a_device_that_says_nothing(devices: Fleet, words: tuple[str, ...]) -> None:
    async def say_nothing(login: Login) -> int:
        await login.stall()
        return 0

    for name in devices.devices:
        devices.script(name, say_nothing)
    before = devices.server.commands[:]
    with subprocess.Popen([PROGRAM, *words], env=devices.ctl().environment, stderr=subprocess.PIPE) as caller:
        wait_until(lambda: len(devices.server.commands) > len(before), "the device to be asked")
        caller.send_signal(signal.SIGINT)
        assert caller.wait(10) == 130
        assert caller.stderr is not None
        assert b"Traceback" not in caller.stderr.read()


def test_the_answer_to_a_question_goes_to_who_waits_here(devices: Fleet) -> None:
    """The recipient's own settings name the asker's device too; nothing of the answer goes there."""
    laptop = devices.devices["laptop"]
    silent = laptop.recipient("thinker", answers=False)
    settings = Path(laptop.environment["PI_CODING_AGENT_DIR"], "intercom", "config.json")
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text('{"device": "laptop", "otherDevices": ["desk"]}')
    there = Ctl(laptop.runtime, PI_CODING_AGENT_DIR=laptop.environment["PI_CODING_AGENT_DIR"], PATH="/nowhere")
    asked: list[Ended] = []
    words = ("ask", "thinker@laptop", "which?", "--as", "web-build", "--message-id", "m-late")
    asking = threading.Thread(target=lambda: asked.append(devices.ctl().run(*words)))
    asking.start()
    wait_until(lambda: silent.has("m-late"), "the question to arrive")
    # From the session that was asked: only its reply counts.
    refused = there.run("send", "web-build@desk", "no ssh here", "--message-id", "m-other")
    assert "cannot run ssh" in refused.err
    answered = there.run(
        "send", "web-build@desk", "Port 8443.", "--reply-to", "m-late", "--session-id", "thinker-native"
    )
    assert answered.status == 0, answered
    silent.reply("m-late", "Port 8443.")
    asking.join()
    assert asked[0].out.endswith("Port 8443.\n")


def test_seventeen_that_answer_and_three_that_drop() -> None:
    """A listener with a full queue drops what knocks, as a firewall does: ssh gives up after ConnectTimeout."""
    names = [f"d{number:02d}" for number in range(17)]
    dropping = ["x1", "x2", "x3"]
    with fleet(*names) as devices, deaf_port() as port:
        for name in dropping:
            devices.add_host(name, f"Port {port}")
        began = time.monotonic()
        listings = devices.reach.list_sessions([*names, *dropping])
        took_s = time.monotonic() - began
        assert [listing.code for listing in listings] == [""] * 17 + ["unreachable"] * 3, listings
        print(f"17 devices and 3 that drop in {took_s:.1f} s")
        # ConnectTimeout and a second, on a machine that also serves all twenty.
        assert 9 < took_s < 20
        wait_gone("ssh")


@contextlib.contextmanager
def deaf_port() -> Iterator[int]:
    """A port whose connections stay in the air."""
    with socket.socket() as listening, contextlib.ExitStack() as stack:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):
            filling = stack.enter_context(socket.socket())
            filling.setblocking(False)
            filling.connect_ex(listening.getsockname())
        yield listening.getsockname()[1]


def test_twenty_devices_at_once() -> None:
    names = [f"d{number:02d}" for number in range(20)]
    with fleet(*names) as devices:
        devices.devices["d07"].recipient("api-fix")
        began = time.monotonic()
        listings = devices.reach.list_sessions(names)
        took_s = time.monotonic() - began
        assert [listing.device for listing in listings] == names
        assert [listing.total for listing in listings] == [int(name == "d07") for name in names], listings
        print(f"20 devices in {took_s:.1f} s")
        wait_gone("ssh")
