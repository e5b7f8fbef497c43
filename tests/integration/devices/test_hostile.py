"""Devices that misbehave, and logins that print what they like: contained, and told with certainty."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.devices.naming import DeviceTarget
from libintercom.outcomes import NOT_SENT, UNKNOWN
from tests.integration.devices.matrix import impatient
from tests.support.fleet import Fleet, fleet, wait_gone
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.ssh_server import Login

pytestmark = pytest.mark.needs("ssh")

TARGET = DeviceTarget("api-fix", "laptop")
MARKER = "\nintercom-remote 1\n"


@pytest.fixture(scope="module")
def shared() -> Iterator[Fleet]:
    with fleet("laptop") as made:
        made.devices["laptop"].recipient("api-fix")
        yield made


@pytest.fixture
def devices(shared: Fleet) -> Iterator[Fleet]:
    yield shared
    shared.server.scripts.clear()
    wait_gone("ssh")
    assert not shared.server.failures


def noisy(before: bytes) -> Any:
    async def script(login: Login) -> int:
        await login.say(before)
        return await login.run()

    return script


NOISE = {
    "a notice": b"Welcome!\nLast login: never\n",
    "a notice without an end": b"prompt> ",
    "an rc file's JSON": b'{"version":1,"sessions":[{"id":"pi-forged00"}]}\n',
    "an rc file's receipt": b'{"version":1,"receipt":{"accepted":true,"delivered":true}}\n',
    "a marker": b"intercom-remote 1\n",
    "the other marker": b"\nintercom-remote node\n",
    "carriage returns": b"hello\r\n\r\n",
    "controls and bytes": bytes(range(256)) + b"\n",
    "half a megabyte": b"x" * 80 + b"\n" * 500_000,
}


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE.keys())
def test_what_a_login_prints_first_changes_nothing(devices: Fleet, noise: bytes) -> None:
    devices.script("laptop", noisy(noise))
    ended = devices.ctl().run("ask", "api-fix@laptop", "which?", "--json")
    assert ended.json["reply"]["text"] == "answer to which?"
    listed = devices.ctl().run("list", "--device", "laptop", "--json").json["devices"][0]
    assert [row["name"] for row in listed["sessions"]] == ["api-fix@laptop"]


def test_windows_line_ends(devices: Fleet) -> None:
    async def with_returns(chunk: bytes) -> bytes:
        return chunk.replace(b"\n", b"\r\n")

    async def script(login: Login) -> int:
        return await login.run(outward=with_returns)

    devices.script("laptop", script)
    assert (
        devices.ctl().run("ask", "api-fix@laptop", "which?").out == "**Reply from api-fix@laptop:**\nanswer to which?\n"
    )


async def _flood(login: Login, start: str, chunk: bytes) -> int:
    await login.say(start)
    while True:
        await login.say(chunk)


FLOODS = {
    "before the marker": ("", b"y\n" * 32_000),
    "one line": ("", b"y" * 64_000),
    "behind the marker": (MARKER, b"y\n" * 32_000),
    "empty lines": (MARKER, b"\n" * 64_000),
    "one line of JSON": (MARKER + '{"version":1,"sessions":["', b"y" * 64_000),
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS.keys())
def test_endless_output_is_ended(devices: Fleet, flood: tuple[str, bytes]) -> None:
    devices.script("laptop", lambda login: _flood(login, *flood))
    listing = devices.reach.list_sessions(("laptop",))[0]
    assert listing.code == "failed"
    assert "it printed" in listing.reason
    result = devices.reach.send(TARGET, devices.sender, "x", {"message_id": "m-flood"})
    assert result.outcome.outcome == (UNKNOWN if flood[0] else NOT_SENT)
    assert not devices.devices["laptop"].recipients[0].has("m-flood")


def test_an_endless_banner_is_ended_by_the_deadline(devices: Fleet) -> None:
    async def script(login: Login) -> int:
        while True:
            login.complain("all work and no play\n" * 1_000)
            await asyncio.sleep(0.01)

    devices.script("laptop", script)
    with impatient():
        result = devices.reach.send(TARGET, devices.sender, "x", {"message_id": "m-banner"})
    assert (result.outcome.outcome, result.outcome.code) == (NOT_SENT, "unreachable")
    assert result.outcome.reason == "no answer within 2 s; it said last: all work and no play"


def answering(**members: Any) -> Any:
    async def script(login: Login) -> int:
        await login.say(MARKER)
        await login.hear()
        await login.say(json.dumps({"version": 1, **members}) + "\n")
        return 0

    return script


FORGED = {
    "id": "pi-deadbeef@desk",
    "name": "boss@desk\x1b]0;owned\x07\u202e\u2028",
    "cwd": "/\x1b[2J",
    "model": "m\n• x",
}


def test_a_forged_row_stays_on_its_device_and_on_its_line(devices: Fleet) -> None:
    devices.script("laptop", answering(sessions=[FORGED] * 3, now="yesterday"))
    ended = devices.ctl().run("list", "--device", "laptop")
    row = ended.out.splitlines()[1]
    assert row.startswith("• boss@desk\ufffd]0;owned\ufffd<U+202E><U+2028>@laptop ")
    assert "(pi-deadb@laptop) " in row
    assert not set(ended.out) & {"\x1b", "\x07", "\u202e", "\u2028"}
    assert ended.out.count("\n• ") == 1


@pytest.mark.parametrize(
    "members",
    [
        {"error": "\x1b[31mNot sent to desk: unreachable\x1b[0m\nintercomctl: sent"},
        {"error": ["x"]},
        {"receipt": {"accepted": True, "id": "another"}},
        {"receipt": "yes"},
        {"reply": {"content": 5}},
        {"sessions": {}},
    ],
    ids=str,
)
def test_a_forged_answer_is_no_success_and_no_raw_text(devices: Fleet, members: dict[str, Any]) -> None:
    devices.script("laptop", answering(**members))
    for command in ("send", "ask"):
        ended = devices.ctl().run(command, "api-fix@laptop", "x")
        assert ended.status in {1, 3, 5}, ended
        assert "\x1b" not in ended.out + ended.err
        assert [line for line in ended.err.splitlines() if line.startswith("intercomctl:")] == ended.err.splitlines()[
            :1
        ]


def test_a_clock_that_is_a_day_off(devices: Fleet) -> None:
    day_ms = 86_400_000
    session = {"id": "pi-00000001", "name": "a", "cwd": "/", "model": "m", "lastSeen": day_ms - 7_200_000}
    devices.script("laptop", answering(sessions=[session], now=day_ms))
    assert "last_seen:2h ago" in devices.ctl().run("list", "--device", "laptop").out


METACHARACTERS = "$(touch /tmp/x) `id` ; & | > < \\ ' \" ! # * ? [a] {b} ~ %s \t\n \u202e 📎 é \ud800 "


def test_a_message_of_900_kib_arrives_as_it_was(devices: Fleet) -> None:
    text = METACHARACTERS + "x" * 900 * 1024
    result = devices.reach.send(TARGET, devices.sender, text, {"message_id": "m-big"})
    assert result.outcome.is_accepted, result
    recipient = devices.devices["laptop"].recipients[0]
    wait_until(lambda: recipient.has("m-big"), "the message to arrive")
    (got,) = [one for one in recipient.got if one.message.id == "m-big"]
    assert got.message.content.text == text
    assert (got.row.name, got.row.cwd, got.row.model) == ("web-build@desk", "/work/web", "remote-cli")
