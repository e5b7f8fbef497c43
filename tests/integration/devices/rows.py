"""Every row of the seeds' two failure tables: how it comes about, and what is then said, to the word.

Owns the rows and running one. A row's text may hold ``…`` for what differs between machines.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from libintercom.identity import make_uuid
from tests.support.waiting import NotSeen, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.fleet import Device, Fleet
    from tests.support.ssh_server import Login

    Arrange = Callable[[Device, Fleet], None]

DEVICE = "laptop"
# A name that no resolver knows (RFC 6761), and a device whose ssh server listens nowhere.
NOWHERE, CLOSED, LOCKED = "nowhere.invalid", "closed", "locked"


@dataclass(frozen=True)
class Row:
    """One row: the state of the device, a command line, and what is said. ``arrived``: how often the message did."""

    name: str
    arrange: Arrange
    words: tuple[str, ...]
    said: str
    status: int
    arrived: int | None = None


def nothing(_device: Device, _fleet: Fleet) -> None:
    """The device works; its recipients are ``api-fix``, ``twin`` twice, ``busy`` and ``silent``."""


def no_command(device: Device, _fleet: Fleet) -> None:
    device.uninstall()


def no_node(device: Device, _fleet: Fleet) -> None:
    device.install_node(has_node=False)


def old_node(device: Device, _fleet: Fleet) -> None:
    device.install_node(lists_only=True)


def saying(script: Callable[[Login], Any]) -> Arrange:
    """A scripted device."""
    return lambda _device, fleet: fleet.script(DEVICE, script)


async def fail(login: Login) -> int:
    await login.say("\n")
    login.complain("some: thing\nis very wrong here\n\n")
    return 3


async def refuse_list(login: Login) -> int:
    await login.say("\nintercom-remote 1\n")
    await login.hear()
    await login.say('{"version":1,"error":"The broker there is out of order."}\n')
    return 1


async def answer_in_version_2(login: Login) -> int:
    await login.say("\nintercom-remote 1\n")
    await login.hear()
    await login.say('{"version":2,"sessions":[]}\n')
    return 0


async def lose_after_receipt(login: Login) -> int:
    await login.say("\nintercom-remote 1\n")
    await login.hear()
    await login.say('{"version":1,"receipt":{"accepted":true,"delivered":true}}\n\n\n')
    login.complain("Connection to laptop closed by remote host.\n")
    return 255


async def lose_before_receipt(login: Login) -> int:
    await login.say("\nintercom-remote 1\n")
    await login.hear()
    login.complain("client_loop: send disconnect: Broken pipe\n")
    return 255


NO_COMMAND = "its intercom has no cross-device command; update intercom there"
LIST = ("list", "--device")
API = f"api-fix@{DEVICE}"
LISTS = (
    Row(
        "another device knows it",
        nothing,
        (*LIST, "Laptop"),
        "**Main sessions on laptop (5):**\n• api-fix@laptop (pi-…",
        0,
    ),
    Row("filtered", nothing, (*LIST, DEVICE, "--to", "API"), '**Main sessions on laptop (1 of 5 match "API"):**\n…', 0),
    Row("filtered with its ending", nothing, (*LIST, DEVICE, "--to", API), "**Main sessions on laptop (1 of 5 …", 0),
    Row(
        "nobody there",
        nothing,
        (*LIST, "empty"),
        "**Main sessions on empty (0):** no Pi session is connected there.…",
        0,
    ),
    Row("unknown host", nothing, (*LIST, NOWHERE), f"**{NOWHERE}:** unreachable (Could not resolve hostname …)…", 4),
    Row("closed port", nothing, (*LIST, CLOSED), "**closed:** unreachable (connect to host 127.0.0.1 port 1: …)…", 4),
    Row("no login", nothing, (*LIST, LOCKED), "**locked:** unreachable (…ermission denied (…).)…", 4),
    Row("no command", no_command, (*LIST, DEVICE), f"**laptop:** not listed: {NO_COMMAND}…", 4),
    Row("no node", no_node, (*LIST, DEVICE), "**laptop:** not listed: node is not on the PATH of its SSH commands…", 4),
    Row("another failure", saying(fail), (*LIST, DEVICE), "**laptop:** not listed: is very wrong here…", 1),
    Row(
        "an error told", saying(refuse_list), (*LIST, DEVICE), "**laptop:** not listed: The broker there is out of…", 1
    ),
    Row(
        "another version",
        saying(answer_in_version_2),
        (*LIST, DEVICE),
        "**laptop:** not listed: it answers in version 2…",
        1,
    ),
    Row(
        "the Node command",
        old_node,
        (*LIST, DEVICE),
        "**Main sessions on laptop (1):**\n• api-fix@laptop (pi-01234@laptop)…",
        0,
    ),
)
MESSAGES = (
    Row("sent", nothing, ("send", API, "hi"), "Message sent to api-fix@laptop (defaults to steer; wakes idle …", 0, 1),
    Row("sent in any case", nothing, ("send", "API-FIX@LAPTOP", "hi"), "Message sent to API-FIX@laptop (…", 0, 1),
    Row("asked", nothing, ("ask", API, "which?"), "**Reply from api-fix@laptop:**\nanswer to which?\n", 0, 1),
    Row(
        "unreachable", nothing, ("send", f"a@{NOWHERE}", "x"), f"Not sent to {NOWHERE}: unreachable (Could not …)\n", 4
    ),
    Row(
        "unreachable ask", nothing, ("ask", "a@closed", "x"), "Not sent to closed: unreachable (connect to host …)\n", 4
    ),
    Row("no command", no_command, ("send", API, "x"), f"Not sent to laptop: {NO_COMMAND}\n", 4, 0),
    Row(
        "no node",
        no_node,
        ("send", API, "x"),
        "Not sent to laptop: node is not on the PATH of its SSH commands\n",
        4,
        0,
    ),
    Row(
        "older",
        old_node,
        ("ask", API, "x"),
        "Not sent to laptop: its intercom is older than this command; update intercom there\n",
        4,
        0,
    ),
    Row("no broker", nothing, ("send", "a@empty", "x"), "Not sent to empty: no Pi session is connected there\n", 4),
    Row(
        "nobody",
        nothing,
        ("send", f"zz@{DEVICE}", "x"),
        'Message to "zz@laptop" was not delivered: Session not found.\n',
        1,
    ),
    Row(
        "nobody to ask",
        nothing,
        ("ask", f"zz@{DEVICE}", "x"),
        'Ask to "zz@laptop" was not sent: Session not found.\n',
        1,
    ),
    Row(
        "a typing mistake",
        nothing,
        ("send", f"api-fux@{DEVICE}", "x"),
        'Message to "api-fux@laptop" was not delivered: …Did you mean: pi-…@laptop (api-fix, /work/api)?\n',
        1,
    ),
    Row(
        "busy",
        nothing,
        ("ask", f"busy@{DEVICE}", "x"),
        'Ask to "busy@laptop" was not sent: it is not accepting asks…',
        1,
        0,
    ),
    Row(
        "ambiguous",
        nothing,
        ("send", f"twin@{DEVICE}", "x"),
        'Target "twin@laptop" matches multiple sessions…@laptop (twin…',
        1,
    ),
    Row(
        "no reply",
        nothing,
        ("ask", f"silent@{DEVICE}", "x", "--timeout", "1"),
        'No reply from "silent@laptop" within 1 seconds…',
        5,
        1,
    ),
    Row(
        "lost after the receipt",
        saying(lose_after_receipt),
        ("ask", API, "x"),
        "The ask reached laptop, and the connection was lost before a reply came (Connection to laptop closed…)\n",
        5,
    ),
    Row(
        "lost before the receipt",
        saying(lose_before_receipt),
        ("send", API, "x"),
        "Delivery unknown: laptop gave no answer after the request was handed over (client_loop: send disconnect: "
        "Broken pipe). The message may have arrived. Check the recipient before sending again.\n",
        3,
    ),
    Row(
        "this device",
        nothing,
        ("send", "a@DESK", "x"),
        '"a@DESK" is on this device (desk). Use "a". Nothing was sent.\n',
        1,
    ),
)
ROWS = (*LISTS, *MESSAGES)


def try_row(fleet: Fleet, row: Row) -> list[str]:
    """What is wrong with what was said, or with what the recipients got."""
    device = fleet.devices[DEVICE]
    message_id = make_uuid()
    words = (*row.words, "--message-id", message_id) if row.words[0] != "list" else row.words
    row.arrange(device, fleet)
    try:
        ended = fleet.ctl().run(*words)
    finally:
        fleet.server.scripts.clear()
        device.install()
    shown = ended.out + ended.err.removeprefix("intercomctl: ")
    wrong = []
    if not re.fullmatch(".*".join(map(re.escape, row.said.split("…"))), shown, re.DOTALL):
        wrong.append(f"{row.name}: it said {shown!r}, not {row.said!r}")
    if ended.status != row.status:
        wrong.append(f"{row.name}: exit status {ended.status}, not {row.status}")
    if row.arrived:
        # It is in the recipient's socket by now; the recipient reads it in a moment.
        with contextlib.suppress(NotSeen):
            wait_until(lambda: _arrived(device, message_id), "the message to arrive")
    arrived = _arrived(device, message_id)
    if row.arrived is not None and arrived != row.arrived:
        wrong.append(f"{row.name}: it arrived {arrived} times, not {row.arrived}")
    return wrong


def _arrived(device: Device, message_id: str) -> int:
    return sum(recipient.count(message_id) for recipient in device.recipients)


def populate(fleet: Fleet) -> None:
    """The sessions that the rows are about, and the names without a server."""
    device = fleet.devices[DEVICE]
    device.recipient("api-fix", status="idle", accepts_asks=True)
    device.recipient("busy", accepts_asks=False)
    device.recipient("silent", answers=False)
    device.recipient("twin")
    device.recipient("twin", native_id="another")
    fleet.add_host(CLOSED, "Port 1")
    fleet.add_host(LOCKED, "User nobody-here", "PubkeyAuthentication no")
    fleet.configure("desk", *fleet.devices, NOWHERE, CLOSED, LOCKED)
