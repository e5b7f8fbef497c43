"""A server's life: lineage, native ID, the broker that goes and comes back, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any, Self

import pytest

from libintercom.identity import NATIVE_ID_VARIABLE, PARENT_VARIABLE, ROOT_VARIABLE, child_environment, peer_id
from tests.support.ctl import Ctl
from tests.support.daemon import Daemon, running_daemon, runtime_directory
from tests.support.scripted_broker import Peer, scripted
from tests.support.tool import PROGRAM, agent
from tests.support.waiting import DEADLINE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


class Server:
    """A server with bare pipes, for what a well-behaved client never does."""

    def __init__(self, environment: Mapping[str, str], *words: str) -> None:
        self.process = subprocess.Popen(
            [PROGRAM, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            cwd="/",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.process.kill()
        self.process.communicate()

    def says(self, frame: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(frame).encode() + b"\n")
        self.process.stdin.flush()

    def hears(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        heard: dict[str, Any] = json.loads(self.process.stdout.readline())
        return heard

    def call(self, number: int, action: str) -> None:
        """Call the tool; the answer is not read."""
        params = {"name": "intercom", "arguments": {"action": action}}
        self.says({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})

    def initialize(self) -> Server:
        self.says(INITIALIZE)
        assert self.hears()["result"]["serverInfo"]["name"] == "intercom"
        self.says({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({ROOT_VARIABLE: "main-1"}, "PI_INTERCOM_PARENT_SESSION_ID is missing"),
        ({PARENT_VARIABLE: "main-1"}, "PI_INTERCOM_ROOT_SESSION_ID is missing"),
        ({ROOT_VARIABLE: "main-1", PARENT_VARIABLE: "main-2"}, "and PI_INTERCOM_PARENT_SESSION_ID differ"),
        ({ROOT_VARIABLE: "", PARENT_VARIABLE: ""}, "PI_INTERCOM_ROOT_SESSION_ID is empty"),
        ({ROOT_VARIABLE: " main-1", PARENT_VARIABLE: " main-1"}, "is padded with white space"),
    ],
)
def test_an_invalid_lineage_ends_the_server_with_a_sentence(ctl, variables, reason):
    ended = subprocess.run(
        [PROGRAM],
        env={**ctl.environment, **variables},
        input=json.dumps(INITIALIZE).encode(),
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stdout == b""
    (line,) = ended.stderr.decode().splitlines()
    assert line.startswith("intercom-mcp: invalid session lineage: ")
    assert reason in line


@pytest.mark.parametrize("words", [["--ask-timeout", "0"], ["--ask-timeout", "nan"], ["--fly"], ["--session-id", " x"]])
def test_a_mistaken_command_line_is_told(ctl, words):
    ended = subprocess.run(
        [PROGRAM, *words], env=ctl.environment, input=b"", capture_output=True, timeout=DEADLINE_S, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert ended.stderr


def test_without_a_broker_that_may_start_it_says_so():
    with runtime_directory() as directory:
        environment = Ctl(directory).environment
        os.chmod(directory, 0o777)
        ended = subprocess.run(
            [PROGRAM], env=environment, input=b"", capture_output=True, timeout=DEADLINE_S, check=False
        )
        assert (ended.returncode, ended.stdout) == (4, b"")
        assert b"refusing the runtime directory" in ended.stderr


def test_a_child_sees_its_group_only(ctl):
    async def talk():
        main_id = "main-of-the-group"
        child = {**ctl.environment, **child_environment(main_id)}
        async with (
            agent(ctl.environment, "the-main", "--session-id", main_id) as main,
            agent(ctl.environment, "a-stranger") as stranger,
            agent(child, "the-child") as one,
        ):
            seen = (await one.call("list", children=True)).text
            assert "the-main" in seen
            assert "a-stranger" not in seen
            assert "**Child sessions (1):** 1 idle. Their rows: intercom({" in (await main.call("list")).text
            lost = await one.call("send", to="a-stranger", message="x")
            assert (lost.is_error, lost.facts["code"]) == (True, "not_found")
            assert (await main.call("send", to="the-child", message="x")).is_error is False
            assert "the-child" not in (await stranger.call("list")).text

    asyncio.run(talk())


def test_the_native_id_names_the_session(ctl):
    async def talk():
        environment = {**ctl.environment, NATIVE_ID_VARIABLE: "an-id-of-my-own"}
        async with agent(environment, "named") as one:
            assert peer_id("an-id-of-my-own") in (await one.call("status")).text
        async with agent(environment, "named", "--session-id", "the-option-wins") as one:
            assert peer_id("the-option-wins") in (await one.call("status")).text

    asyncio.run(talk())


def test_a_session_takes_up_what_its_last_server_did_not_show(ctl):
    async def talk():
        mine = {**ctl.environment, NATIVE_ID_VARIABLE: "kept-over-restarts"}
        async with agent(ctl.environment, "asker") as asker:
            async with agent(mine, "reviewer") as one:
                await asker.call("send", to="reviewer", message="shown before")
                await one.await_text("1 messages wait", "list")
                assert "shown before" in (await one.call("pending")).text
                await asker.call("send", to="reviewer", message="never shown")
                await one.await_text("1 messages wait", "list")
            async with agent(mine, "reviewer") as again:
                assert (await again.call("list")).text.endswith("1 messages wait (intercom pending)")
                shown = (await again.call("pending")).text
                assert "never shown" in shown
                assert "shown before" not in shown
                assert (await again.call("pending")).text == "No message and no question waits."

    asyncio.run(talk())


def test_what_a_killed_server_was_showing_is_told_and_shown_again_only_when_asked_for(ctl):
    mine = {**ctl.environment, NATIVE_ID_VARIABLE: "killed-in-the-act"}
    with Server(mine, "--name", "reviewer") as server:
        server.initialize()
        assert ctl.run("send", "reviewer", "was this shown?", "--message-id", "m-doubt").status == 0
        # Nobody reads its output: once the pipe is full, the result that shows the message stays in the server.
        for number in range(100, 300):
            server.call(number, "list")
        server.call(300, "pending")
        wait_until(lambda: "handed" in ctl.run("trace", "m-doubt").out, "the message to be handed over")
    assert "placed" not in ctl.run("trace", "m-doubt").out

    async def talk():
        async with agent(mine, "reviewer") as again:
            told = (await again.call("pending")).text
            assert told.startswith("**Perhaps shown before the server was ended; to see one again: intercom({ action: ")
            assert "\n• m-doubt from " in told
            assert (await again.call("pending")).text == told
            shown = (await again.call("pending", entryId="m-doubt")).text
            assert "[intercom " in shown
            assert "was this shown?" in shown
            assert (await again.call("pending")).text == "No message and no question waits."

    asyncio.run(talk())
    assert "placed" in ctl.run("trace", "m-doubt").out


def test_a_second_server_of_one_native_id_says_that_it_has_no_journal(ctl):
    async def talk():
        mine = {**ctl.environment, NATIVE_ID_VARIABLE: "twice-at-once"}
        async with agent(mine, "first") as first, agent(mine, "second") as second:
            assert "No journal: " not in (await first.call("status")).text
            assert "\n\nNo journal: " in (await second.call("status")).text
            assert "**Main sessions (1):**" not in (await second.call("list", to="no-one")).text

    asyncio.run(talk())


def test_a_broker_that_comes_back_finds_the_sessions_again():
    async def talk(ctl: Ctl, first: Daemon) -> None:
        async with agent(ctl.environment, "asker") as one, agent(ctl.environment, "reviewer") as other:
            session_id = (await one.call("status")).text.splitlines()[1]
            await one.call("send", to="reviewer", message="before the restart")
            await other.await_text("1 messages wait", "list")
            first.process.kill()
            first.process.wait()
            with running_daemon("--idle-exit-s", "600", directory=ctl.directory):
                # Whatever is called meanwhile is an error and says why; nothing ends.
                await one.await_text("reviewer", "list")
                await other.await_text("asker", "list")
                assert (await one.call("status")).text.splitlines()[1] == session_id
                assert "before the restart" in (await other.call("pending")).text
                assert (await one.call("send", to="reviewer", message="after it")).facts["accepted"] is True

    with running_daemon("--idle-exit-s", "600") as first:
        asyncio.run(talk(Ctl(first.directory, PI_INTERCOM_START_POLICY="supervisor"), first))


def test_a_failure_in_the_background_is_on_stderr_and_in_the_log():
    with running_daemon("--idle-exit-s", "600") as daemon:
        ctl = Ctl(daemon.directory, PI_INTERCOM_START_POLICY="supervisor", PI_CODING_AGENT_DIR=f"{daemon.directory}/a")
        log = f"{daemon.directory}/a/intercom/background-errors.log"
        with Server(ctl.environment, "--name", "watches") as server:
            server.initialize()
            daemon.process.kill()
            wait_until(lambda: os.path.exists(log) and os.path.getsize(log), "the failure to be logged")
            out, err = server.process.communicate(timeout=DEADLINE_S)
        with open(log, encoding="utf-8") as file:
            (logged,) = file.read().splitlines()
        assert "reconnect: intercomd is not running" in logged
        assert "intercom-mcp: reconnect: intercomd is not running" in err.decode()
        assert out == b""


def test_an_acknowledgement_that_never_comes_is_unknown():
    def break_off(peer: Peer) -> None:
        peer.register()
        while peer.hear()["type"] != "send":
            pass

    async def talk(ctl: Ctl) -> None:
        async with agent(ctl.environment, "asker") as one:
            told = await one.call("send", to="reviewer", message="did it arrive?")
            assert told.is_error
            assert told.text.startswith("Delivery unknown: the connection ended before an acknowledgement")
            assert told.text.endswith("The message may have arrived. Check the recipient before sending again.")
            assert told.facts["deliveryUnknown"] is True
            assert told.facts["messageId"] in told.text
            assert told.facts.keys() & {"accepted", "delivered"} == set()
            lost = await one.call("send", to="reviewer", message="and this?")
            assert lost.is_error
            told = {name: lost.facts[name] for name in ("deliveryUnknown", "accepted", "delivered", "code")}
            assert told == {"deliveryUnknown": False, "accepted": False, "delivered": False, "code": "not_connected"}

    with scripted(break_off) as broker:
        directory = os.path.dirname(broker.path)
        asyncio.run(talk(Ctl(directory, PI_INTERCOM_START_POLICY="supervisor")))


def test_it_leaves_when_its_input_ends(ctl):
    with Server(ctl.environment, "--name", "goes-by-itself") as server:
        server.initialize()
        assert "goes-by-itself" in ctl.run("list").out
        _out, err = server.process.communicate(timeout=DEADLINE_S)
        assert server.process.returncode == 0
        assert err.decode().startswith("intercom-mcp: joined as goes-by-itself (pi-")
        assert "goes-by-itself" not in ctl.run("list").out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_leaves_when_told_to_though_its_input_is_open(ctl, number):
    with Server(ctl.environment, "--name", "is-told-to-go") as server:
        server.initialize()
        assert "is-told-to-go" in ctl.run("list").out
        server.process.send_signal(number)
        assert server.process.wait(DEADLINE_S) == 0
        assert "is-told-to-go" not in ctl.run("list").out


def test_nothing_but_the_protocol_is_on_its_standard_output(ctl):
    with Server(ctl.environment, "--name", "quiet") as server:
        server.initialize()
        server.call(2, "list")
        assert server.hears()["id"] == 2
        rest, _err = server.process.communicate(timeout=DEADLINE_S)
        assert rest == b""
