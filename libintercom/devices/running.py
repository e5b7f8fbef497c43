"""What programs call to reach other devices: list, send, ask, check; one ssh for each.

Owns building a request from a caller's words and running several at once. Blocks; a program with other things going
on uses ``Running``, a request in a thread of its own that can be waited for and withdrawn. Does not own who may
(``naming.require_main``) nor what the end means (``judging``).
"""

from __future__ import annotations

import threading
import time

from libintercom.devices import judging
from libintercom.devices.conversation import Conversation, Request
from libintercom.devices.openssh import OpenSsh
from libintercom.devices.transport import Hooks, Withdrawal
from libintercom.drafts import draft_message, is_guarded
from libintercom.errors import IntercomError, InvalidMessage, TooLarge
from libintercom.wire.frames import MAX_FRAME_BYTES, encode_json
from libintercom.wire.record import dump_record
from libintercom.wire.values import MAX_ASK_TIMEOUT_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Self, TypeVar

    from libintercom.devices.endings import Ending
    from libintercom.devices.naming import DeviceTarget
    from libintercom.devices.results import DeviceCheck, DeviceListing, DeviceResult
    from libintercom.devices.transport import Transport
    from libintercom.drafts import SendOptions
    from libintercom.profile import Profile
    from libintercom.wire.messages import Message

    T = TypeVar("T")

# How many devices are asked at the same time: each is a child and a key exchange.
MAX_AT_ONCE = 32
# Members of a message that travel as they are; others stay on their device (human origin, guards, hints).
_MEMBERS = ("delivery", "queueMode", "threadId", "replyTo")


class Sender:
    """The sending main, as its own broker lists it: ``peer_id``, ``name`` and ``cwd``."""

    __slots__ = ("cwd", "name", "peer_id")

    def __init__(self, peer_id: str, name: str | None, cwd: str) -> None:
        self.peer_id, self.name, self.cwd = peer_id, name or peer_id, cwd

    @classmethod
    def of(cls, profile: Profile, peer_id: str = "") -> Sender:
        """The sender with a session's profile; ``peer_id`` where it has got another than it wanted."""
        return cls(peer_id or profile.requested_id or "", profile.name, profile.cwd)

    def dump(self) -> dict[str, str]:
        return {"id": self.peer_id, "name": self.name, "cwd": self.cwd}


class Reach:
    """Requests from the device ``origin`` to others. ``transport`` carries them; by default the ssh program."""

    def __init__(self, origin: str, transport: Transport | None = None) -> None:
        self._origin = origin
        self._transport: Transport = transport or OpenSsh()

    def list_sessions(
        self, devices: Sequence[str], to: str = "", hooks: Hooks | None = None
    ) -> list[DeviceListing]:
        """The main sessions of each device, in order; ``to`` keeps the rows with that text in name or ID."""

        def list_one(device: str) -> DeviceListing:
            request = Request({"command": "list", "origin": self._origin}, ("sessions",))
            return judging.judge_list(device, to, *self._converse(device, request, hooks), time.time() * 1000)

        return run_at_once(list_one, devices)

    def check(self, devices: Sequence[str], hooks: Hooks | None = None) -> list[DeviceCheck]:
        """What each device's command says of itself, in order."""

        def check_one(device: str) -> DeviceCheck:
            request = Request({"command": "check", "origin": self._origin, "device": device}, ("check",))
            return judging.judge_check(device, *self._converse(device, request, hooks))

        return run_at_once(check_one, devices)

    def send(
        self, target: DeviceTarget, sender: Sender, text: str | None, options: SendOptions, hooks: Hooks | None = None
    ) -> DeviceResult:
        """Send one message. What became of it is the result; ``options`` has its ``message_id``.

        Raises:
            InvalidMessage, TooLarge: the message breaks a rule; nothing was sent.
        """
        message = _draft(text, options)
        request = Request(self._message("send", target, sender, message), ("receipt",), message_id=message.id)
        return judging.judge_message(target, message.id, *self._converse(target.device, request, hooks))

    def ask(
        self,
        target: DeviceTarget,
        sender: Sender,
        text: str | None,
        options: SendOptions,
        timeout_s: float,
        hooks: Hooks | None = None,
    ) -> DeviceResult:
        """Ask and wait for the reply for up to ``timeout_s`` seconds. Raises as ``send``."""
        if not 0 <= timeout_s * 1000 <= MAX_ASK_TIMEOUT_MS:
            raise InvalidMessage(f"an ask may wait 0 to {MAX_ASK_TIMEOUT_MS / 1000:g} s, not {timeout_s:g}")
        message = _draft(text, {**options, "expects_reply": True})
        members = self._message("ask", target, sender, message)
        members["timeoutMs"] = round(timeout_s * 1000)
        request = Request(members, ("reply",), message_id=message.id, reply_timeout_s=timeout_s)
        return judging.judge_message(target, message.id, *self._converse(target.device, request, hooks))

    def _message(self, command: str, target: DeviceTarget, sender: Sender, message: Message) -> dict[str, Any]:
        dumped = dump_record(message)
        said: dict[str, Any] = {"text": message.content.text, "messageId": message.id}
        if "attachments" in dumped["content"]:
            said["attachments"] = dumped["content"]["attachments"]
        said.update((name, dumped[name]) for name in _MEMBERS if name in dumped)
        return {
            "command": command,
            "origin": self._origin,
            "device": target.device,
            "from": sender.dump(),
            "to": target.to,
            "message": said,
            # Ours takes the end of its input as a withdrawal only from a caller that says so.
            "holdsInput": True,
        }

    def _converse(self, device: str, request: Request, hooks: Hooks | None) -> tuple[Conversation, Ending]:
        conversation = Conversation(request)
        return conversation, self._transport.converse(device, conversation, hooks or Hooks())


class Running:
    """A request in a thread of its own.

    Wait for it, withdraw it, take its ``result``; in a ``with`` block it is withdrawn and ended at the latest there.
    """

    def __init__(self, run: Callable[[Hooks], Any], on_stage: Callable[[str], object] | None = None) -> None:
        self._withdrawal = Withdrawal()
        self._run, self._hooks = run, Hooks(self._withdrawal, on_stage)
        self._results: list[Any] = []
        self._failure: IntercomError | None = None
        # Not the thread's own end: an interrupted ``join`` takes a running thread for an ended one.
        self._end = threading.Event()
        # A program that ends without waiting takes its child's input with it, which withdraws the request.
        threading.Thread(target=self._work, daemon=True).start()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Whether it is over, after waiting at most so long."""
        return self._end.wait(timeout_s)

    def withdraw(self) -> None:
        """End it early; ``wait`` then takes some seconds at most."""
        self._withdrawal.say()

    def result(self) -> Any:
        """What it came to, once it is over; raises the IntercomError that it raised. A bug has shown its own trace."""
        self.wait()
        if self._failure is not None:
            raise self._failure
        return self._results[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.withdraw()
        self.wait()
        self._withdrawal.close()

    def _work(self) -> None:
        try:
            self._results.append(self._run(self._hooks))
        except IntercomError as failure:
            self._failure = failure
        finally:
            self._end.set()


def run_at_once(run: Callable[[str], T], devices: Sequence[str]) -> list[T]:
    """Run something for several devices at the same time, ``MAX_AT_ONCE`` at most; the results in their order."""
    if len(devices) == 1:
        return [run(devices[0])]
    results: dict[str, T] = {}
    failures: list[IntercomError] = []
    waiting = list(reversed(devices))

    def work() -> None:
        while True:
            try:
                device = waiting.pop()
            except IndexError:
                return
            try:
                results[device] = run(device)
            except IntercomError as failure:
                failures.append(failure)
                return

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(MAX_AT_ONCE, len(devices)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return [results[device] for device in devices]


def _draft(text: str | None, options: SendOptions) -> Message:
    if is_guarded(options):
        raise InvalidMessage("guards and reply hints stay on their device")
    message_id = options.get("message_id")
    if message_id is None:
        raise InvalidMessage("a message to another device has an ID that its caller chose before")
    message = draft_message(message_id, int(time.time() * 1000), text, options)
    size_bytes = len(encode_json(dump_record(message)))
    # The other broker would refuse it, after it crossed the connection.
    if size_bytes > MAX_FRAME_BYTES:
        raise TooLarge(size_bytes, MAX_FRAME_BYTES)
    return message
