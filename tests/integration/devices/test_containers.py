"""Three devices as containers: a real sshd and an ordinary user each, a broker on one, and what networks do to them.

The one-file command gets there by ``intercomctl device install`` and runs on Debian's own bare python3; the broker runs
from this checkout, which is mounted. The third has a stand-in for the Node command and nothing of ours.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import site
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.ctl import PROGRAM, Ctl
from tests.support.fleet import NODE_PLACE, ROOT, Fleet, fleet
from tests.support.lab import DEVICE_PACKAGES
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.lab import Container, Engine

pytestmark = [pytest.mark.container, pytest.mark.needs("ssh")]

LAPTOP, PHONE, OLD = "laptop-node", "phone-node", "old-node"
USER = "alice"
# What the containers' Python 3.11 needs to run the broker from this checkout.
SITE = site.getsitepackages()[0]
AGENT = """
import json, sys
from libintercom import Client, profile_from_environment
from libintercom.inbound import AskEnded, Inbound
client = Client.join(profile_from_environment(name=sys.argv[1], model="m", native_id=sys.argv[1]), spawn=False)
for event in client.events():
    if isinstance(event, Inbound):
        print(json.dumps({"got": event.message.id, "from": event.row.name}), flush=True)
        if event.message.is_ask and sys.argv[2] == "answers":
            client.reply(event, "answer to " + event.message.content.text)
    elif isinstance(event, AskEnded):
        print(json.dumps({"ended": event.message_id}), flush=True)
"""


class Node:
    """A device in a container."""

    def __init__(self, container: Container, public_key: str) -> None:
        self.container = container
        container.read(
            f"useradd --create-home --shell /bin/bash {USER}; mkdir -p /run/sshd /home/{USER}/.ssh; "
            f"echo '{public_key}' > /home/{USER}/.ssh/authorized_keys; chown -R {USER} /home/{USER}/.ssh; "
            f"chmod 700 /home/{USER}/.ssh; passwd -d {USER} >/dev/null; "
            "ssh-keygen -A >/dev/null; /usr/sbin/sshd -E /var/log/sshd.log"
        )
        self.address = container.read("hostname -I").split()[0]

    def as_user(self, script: str) -> str:
        return self.container.read(f"su {USER} -c {shlex.quote(script)}")

    def start_broker(self) -> None:
        run = "PYTHONPATH=/opt/intercom:/opt/site setsid python3 -m intercomd serve --idle-exit-s 600"
        self.as_user(f"{run} </dev/null >/tmp/broker.log 2>&1 &")
        socket = "/tmp/pi-intercom-$(id -u)/broker.sock"
        wait_until(lambda: self.as_user(f"test -S {socket} && echo up || true"), "the broker to serve", 20)

    def start_agent(self, name: str, mode: str) -> None:
        self.container.read(f"cat > /tmp/agent.py <<'END'\n{AGENT}\nEND")
        run = f"PYTHONPATH=/opt/intercom setsid python3 /tmp/agent.py {name} {mode}"
        self.as_user(f"{run} </dev/null >/tmp/{name}.log 2>&1 &")

    def put_node_command(self) -> None:
        place = f"/home/{USER}/{NODE_PLACE}"
        self.container.read(
            f"mkdir -p $(dirname {place}); cp /opt/intercom/tests/support/node_stand_in.py {place}; "
            "printf '#!/bin/sh\\nexec python3 \"$@\"\\n' > /usr/local/bin/node; chmod 755 /usr/local/bin/node"
        )

    def ledger(self, name: str) -> list[dict[str, str]]:
        return [json.loads(line) for line in self.container.read(f"cat /tmp/{name}.log").splitlines()]

    def has(self, name: str, **entry: str) -> bool:
        return any(entry.items() <= line.items() for line in self.ledger(name))

    def filter(self, rule: str) -> None:
        self.container.read(f"iptables {rule}")


@pytest.fixture(scope="module")
def nodes(engine: Engine) -> Iterator[tuple[Fleet, dict[str, Node]]]:
    image = engine.image(DEVICE_PACKAGES)
    mounts = ("--volume", f"{ROOT}:/opt/intercom:ro", "--volume", f"{SITE}:/opt/site:ro", "--cap-add", "NET_ADMIN")
    with fleet() as caller, contextlib.ExitStack() as stack:
        key = ["ssh-keygen", "-y", "-f", f"{caller.folder}/key"]
        public = subprocess.run(key, check=True, capture_output=True, text=True).stdout.strip()
        found = {}
        for name in (LAPTOP, PHONE, OLD):
            found[name] = Node(stack.enter_context(engine.container(image, *mounts)), public)
            caller.add_host(name, f"HostName {found[name].address}", "Port 22", f"User {USER}")
        caller.configure("desk", *found)
        found[LAPTOP].start_broker()
        found[LAPTOP].start_agent("api-fix", "answers")
        found[LAPTOP].start_agent("silent", "never")
        for name in (LAPTOP, PHONE):
            assert caller.ctl().run("device", "install", name).status == 0
        found[OLD].put_node_command()
        yield caller, found


def test_three_devices(nodes: tuple[Fleet, dict[str, Node]]) -> None:
    caller, found = nodes
    ctl = caller.ctl()

    def listed() -> str:
        return ctl.run("list", "--device", "all").out

    wait_until(lambda: f"**Main sessions on {LAPTOP} (2):**" in listed(), "both agents to be listed", 20)
    assert f"**Main sessions on {PHONE} (0):** no Pi session is connected there." in listed()
    assert ctl.run("ask", f"api-fix@{LAPTOP}", "which?").out == f"**Reply from api-fix@{LAPTOP}:**\nanswer to which?\n"
    assert ctl.run("send", f"api-fix@{LAPTOP}", "x", "--message-id", "m-1", "--as", "web-build").status == 0
    wait_until(lambda: found[LAPTOP].has("api-fix", got="m-1", **{"from": "web-build@desk"}), "the message to arrive")
    refused = ctl.run("send", f"api-fix@{PHONE}", "x")
    assert (refused.status, refused.err) == (
        4,
        f"intercomctl: Not sent to {PHONE}: no Pi session is connected there\n",
    )
    assert ctl.run("device", "check", LAPTOP).status == 0
    assert f"**Main sessions on {OLD} (1):**\n• api-fix@{OLD} (pi-" in listed()
    assert ctl.run("ask", f"api-fix@{OLD}", "which?").out == f"**Reply from api-fix@{OLD}:**\nanswer to which?\n"


@pytest.mark.parametrize(
    ("rule", "said"),
    [("REJECT --reject-with tcp-reset", "Connection refused"), ("DROP", "timed out")],
    ids=["reject", "drop"],
)
def test_a_network_that_lets_nobody_in(nodes: tuple[Fleet, dict[str, Node]], rule: str, said: str) -> None:
    caller, found = nodes
    found[LAPTOP].filter(f"-I INPUT -p tcp --dport 22 -j {rule}")
    try:
        ended = run_long(caller.ctl(), "send", f"api-fix@{LAPTOP}", "x", "--message-id", "m-net")
    finally:
        found[LAPTOP].filter(f"-D INPUT -p tcp --dport 22 -j {rule}")
    assert (ended.returncode, f"Not sent to {LAPTOP}: unreachable (" in ended.stderr) == (4, True), ended
    assert said in ended.stderr
    assert not found[LAPTOP].has("api-fix", got="m-net")


def run_long(ctl: Ctl, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *words], env=ctl.environment, capture_output=True, text=True, check=False, timeout=60
    )


def test_power_lost_in_the_middle_of_an_ask(nodes: tuple[Fleet, dict[str, Node]]) -> None:
    """Nothing passes either way: the caller ends after two unanswered keep-alives, the question at its own timeout."""
    caller, found = nodes
    laptop, ctl, timeout_s = found[LAPTOP], caller.ctl(), 25
    words = [PROGRAM, "ask", f"silent@{LAPTOP}", "?", "--message-id", "m-power", "--timeout", str(timeout_s)]
    began = time.monotonic()
    with subprocess.Popen(words, env=ctl.environment, stdout=-1, stderr=-1, text=True) as asked:
        wait_until(lambda: laptop.has("silent", got="m-power"), "the question to arrive", 20)
        rules = ("INPUT -p tcp --dport 22 -j DROP", "OUTPUT -p tcp --sport 22 -j DROP")
        for rule in rules:
            laptop.filter(f"-I {rule}")
        try:
            _, err = asked.communicate(timeout=40)
            assert asked.returncode == 5, err
            assert f"The ask reached {LAPTOP}, and the connection was lost before a reply came (" in err
            wait_until(lambda: laptop.has("silent", ended="m-power"), "the question to be retired", 40)
            assert time.monotonic() - began < timeout_s + 10
        finally:
            for rule in rules:
                laptop.filter(f"-D {rule}")


def test_a_paused_device(nodes: tuple[Fleet, dict[str, Node]]) -> None:
    caller, found = nodes
    container = found[PHONE].container
    container.engine.call("pause", container.name)
    try:
        ended = run_long(caller.ctl(), "list", "--device", PHONE)
    finally:
        container.engine.call("unpause", container.name)
    assert (ended.returncode, f"**{PHONE}:** unreachable (" in ended.stdout) == (4, True), ended
