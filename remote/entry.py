"""The remote command's entry: one JSON request on standard input, one JSON reply as the last line of standard output.

Owns choosing the command and the exit status: 0 done, 1 refused. Statuses that a shell uses for a program that it
could not run never come from here.
"""

from __future__ import annotations

from libintercom.devices.words import SAID_NOT_SENT, UNSUPPORTED
from libintercom.errors import IntercomError
from remote.caller import CallerGone, InvalidRequest, read_request, say
from remote.joining import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LOOKS = {"list": "list_mains", "check": "check", "inventory": "inventory"}
_MESSAGES = ("send", "ask")


def main() -> int:
    """Carry one request out; the exit status."""
    try:
        try:
            reply, status = _answer(read_request()), 0
        except InvalidRequest as wrong:
            reply, status = {"error": str(wrong), "outcome": SAID_NOT_SENT}, 1
        except Refusal as refusal:
            reply, status = {"error": refusal.sentence, "outcome": refusal.outcome, **refusal.parts}, 1
        except IntercomError as failure:
            # Before anything could be sent: what a message met is told by its outcome.
            reply, status = {"error": str(failure), "outcome": SAID_NOT_SENT}, 1
        say(reply)
    except CallerGone:
        return 1
    return status


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    command = request.get("command")
    if command in _LOOKS:
        from remote import looking

        look: dict[str, Any] = getattr(looking, _LOOKS[command])(request)
        return look
    if command in _MESSAGES:
        from remote import messages

        return messages.send(request) if command == "send" else messages.ask(request)
    raise Refusal(f'{UNSUPPORTED}{command}".' if isinstance(command, str) else f'{UNSUPPORTED}{command!r:.80}".')
