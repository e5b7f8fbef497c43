"""What the inspector is asked to do with the tool, and what must come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from intercom_adapters.mcp.tool import ACTIONS
from tests.support.ctl import Ctl
from tests.trials.inspector.driving import Answer, call, inspect

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.daemon import Daemon

RECIPIENT = "reviewer"
# What follows says what the recipient's host can do, which is that host's own matter.
_SENT = f"Message sent to {RECIPIENT} (defaults to steer; "


def run(daemon: Daemon, say: Callable[[str], None]) -> list[str]:
    """List and call through a broker that runs; every violation, in words."""
    ctl = Ctl(daemon.directory)
    violations: list[str] = []

    def expect(what: str, answer: Answer, is_right: bool) -> None:
        say(f"  {what}: {'as expected' if is_right else 'WRONG'}")
        if not is_right:
            violations.append(f"{what}: status {answer.status}, {answer.value}, {answer.err[-400:]}")

    with ctl.joined(RECIPIENT) as joined:
        listed = inspect(ctl.environment, "--method", "tools/list", "--strict")
        expect("tools/list, with no error in the schema", listed, _is_listed(listed))
        roster = call(ctl.environment, action="list")
        expect("list names the other session", roster, f"• {RECIPIENT} (" in _text(roster))
        sent = call(ctl.environment, action="send", to=RECIPIENT, message="from the inspector")
        is_told = _text(sent).startswith(_SENT) and _facts(sent)["accepted"] is True
        expect("send tells what the broker took", sent, is_told)
        joined.hear("message")
        lost = call(ctl.environment, action="send", to="nobody-here", message="x")
        expect("an unknown target is an error", lost, _is_error(lost) and _facts(lost)["deliveryUnknown"] is False)
    return violations


def _is_listed(answer: Answer) -> bool:
    tools = (answer.value or {}).get("tools", [])
    return answer.status == 0 and [tool["name"] for tool in tools] == ["intercom"] and _actions(tools[0]) == [*ACTIONS]


def _actions(tool: dict[str, Any]) -> list[str]:
    actions: list[str] = tool["inputSchema"]["properties"]["action"]["enum"]
    return actions


def _text(answer: Answer) -> str:
    blocks = (answer.value or {}).get("content", [])
    return str(blocks[0]["text"]) if blocks else ""


def _facts(answer: Answer) -> dict[str, Any]:
    return (answer.value or {}).get("structuredContent") or {"accepted": None, "deliveryUnknown": None}


def _is_error(answer: Answer) -> bool:
    return bool((answer.value or {}).get("isError"))
