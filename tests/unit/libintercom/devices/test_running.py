"""What programs call: the requests that go out, several at once, and a request in a thread of its own."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from libintercom.devices.endings import EXITED, WITHDRAWN, Ending
from libintercom.devices.naming import DeviceTarget
from libintercom.devices.running import MAX_AT_ONCE, Reach, Running, Sender, run_at_once
from libintercom.errors import InvalidMessage, TooLarge
from libintercom.profile import Profile

if TYPE_CHECKING:
    from libintercom.devices.transport import Hooks

TARGET = DeviceTarget("api-fix", "laptop")
SENDER = Sender("pi-1", "web-build", "/work/web")


class Recording:
    """A transport that keeps each request and gives one answer to all."""

    def __init__(self, **answer: Any) -> None:
        self.requests: list[dict[str, Any]] = []
        self.devices: list[str] = []
        self._answer = answer

    def converse(self, device: str, conversation: Any, hooks: Hooks) -> Ending:
        conversation.receive(b"\nintercom-remote 1\n")
        line = bytes(conversation.output())
        self.devices.append(device)
        self.requests.append(json.loads(line))
        conversation.wrote(len(line))
        conversation.receive(json.dumps({"version": 1, **self._answer}).encode() + b"\n")
        return Ending(EXITED, 0)


def test_a_list_asks_each_device_the_same() -> None:
    transport = Recording(now=5, sessions=[{"id": "pi-1", "name": "a"}])
    listings = Reach("desk", transport).list_sessions(("laptop", "phone"))
    assert transport.requests == [{"version": 1, "command": "list", "origin": "desk"}] * 2
    assert [(one.device, one.rows[0]["name"], one.now_ms) for one in listings] == [
        ("laptop", "a@laptop", 5),
        ("phone", "a@phone", 5),
    ]


def test_an_ask_has_the_seeds_members() -> None:
    transport = Recording(receipt={"id": "m", "accepted": True, "delivered": True}, reply={"content": {"text": "y"}})
    options: Any = {"message_id": "m", "delivery": "queue", "queue_mode": "replace", "thread_id": "t"}
    result = Reach("desk", transport).ask(TARGET, SENDER, "which?", options, 12)
    (request,) = transport.requests
    assert request == {
        "version": 1,
        "command": "ask",
        "origin": "desk",
        "device": "laptop",
        "from": {"id": "pi-1", "name": "web-build", "cwd": "/work/web"},
        "to": "api-fix",
        "message": {"text": "which?", "messageId": "m", "delivery": "queue", "queueMode": "replace", "threadId": "t"},
        "timeoutMs": 12_000,
        "holdsInput": True,
    }
    assert (result.target, result.reply["content"]["text"]) == ("api-fix@laptop", "y")


HOSTILE = "$(touch x) `id` ; & | \\ ' \" \x1b[2J \u202e \udcff \r\n é 📎"


def test_a_text_crosses_as_it_is() -> None:
    transport = Recording(receipt={"accepted": True})
    Reach("desk", transport).send(TARGET, SENDER, HOSTILE.replace("\x1b", ""), {"message_id": "m"})
    assert transport.requests[0]["message"]["text"] == HOSTILE.replace("\x1b", "")


@pytest.mark.parametrize(
    ("text", "options", "failure"),
    [
        (None, {"message_id": "m"}, InvalidMessage),
        ("x", {}, InvalidMessage),
        ("x", {"message_id": "m", "delivery": "shout"}, InvalidMessage),
        ("x", {"message_id": "m", "guard": {}}, InvalidMessage),
        ("x" * 1_100_000, {"message_id": "m"}, TooLarge),
    ],
)
def test_what_breaks_a_rule_contacts_nobody(text: str | None, options: Any, failure: type[Exception]) -> None:
    transport = Recording()
    with pytest.raises(failure):
        Reach("desk", transport).send(TARGET, SENDER, text, options)
    assert transport.devices == []


@pytest.mark.parametrize("timeout_s", [-1, 3601, float("nan")])
def test_an_ask_has_an_end(timeout_s: float) -> None:
    with pytest.raises(InvalidMessage, match="may wait"):
        Reach("desk", Recording()).ask(TARGET, SENDER, "x", {"message_id": "m"}, timeout_s)


def test_a_sender_is_what_its_profile_says() -> None:
    profile = Profile(cwd="/w", model="m", name="a", requested_id="pi-9")
    assert Sender.of(profile).dump() == {"id": "pi-9", "name": "a", "cwd": "/w"}
    assert Sender.of(profile, "pi-other").peer_id == "pi-other"
    assert Sender("pi-9", None, "/w").name == "pi-9"


def test_a_check_of_the_node_command_is_its_answering() -> None:
    ours = Reach("desk", Recording(check={"program": "p"})).check(("laptop",))[0]
    assert (ours.code, ours.found) == ("", {"program": "p"})
    old = Reach("desk", Recording(error='Unsupported command "check".')).check(("laptop",))[0]
    assert (old.code, old.exit_status) == ("too_old", 4)


def test_many_are_asked_at_the_same_time_and_told_in_order() -> None:
    everybody = threading.Barrier(MAX_AT_ONCE)
    names = [f"d{number}" for number in range(MAX_AT_ONCE)]

    def ask(name: str) -> str:
        everybody.wait(10)
        return name

    assert run_at_once(ask, names) == names
    assert run_at_once(str, [str(number) for number in range(100)]) == [str(number) for number in range(100)]


def test_a_failure_of_one_is_raised_once_all_have_ended() -> None:
    def fail(name: str) -> str:
        if name == "b":
            raise InvalidMessage("b")
        return name

    with pytest.raises(InvalidMessage):
        run_at_once(fail, ["a", "b", "c"])


def test_a_running_request_hears_its_withdrawal() -> None:
    def wait(hooks: Hooks) -> str:
        assert hooks.withdrawal is not None
        import select

        poller = select.poll()
        poller.register(hooks.withdrawal, select.POLLIN)
        return WITHDRAWN if poller.poll(10_000) else "in vain"

    with Running(wait) as running:
        assert not running.wait(0.01)
        running.withdraw()
        running.withdraw()
        assert running.result() == WITHDRAWN


def test_a_running_request_raises_what_it_raised() -> None:
    def fail(_hooks: Hooks) -> None:
        raise InvalidMessage("no")

    with Running(fail) as running, pytest.raises(InvalidMessage):
        running.result()
