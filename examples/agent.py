"""An agent for the demonstration: it joins under a name, answers questions, and leaves when its input ends.

Shows what a program does with the blocking client. Started by ``demo.py``; usage: agent.py NAME
"""

from __future__ import annotations

import os
import sys
import threading

from libintercom.client import Client
from libintercom.inbound import Inbound
from libintercom.profile import profile_from_environment

REPEAT = "Repeat: "
ASK_BACK = "Ask me back."


def main(name: str) -> None:
    """Join, say so on standard output, and answer until the connection or the input ends."""
    threading.Thread(target=_leave_with_input, daemon=True).start()
    profile = profile_from_environment(name=name, model="example", status="idle", accepts_asks=True, pending_asks=0)
    with Client.join(profile) as client:
        print(f"{name} joined", flush=True)
        for event in client.events():
            if isinstance(event, Inbound) and event.message.is_ask:
                client.reply(event, answer(client, event))


def answer(client: Client, question: Inbound) -> str:
    """What this agent replies."""
    text = question.message.content.text
    if text.startswith(REPEAT):
        return text.removeprefix(REPEAT)
    if text == ASK_BACK:
        outcome = client.ask(question.row.id, "What do you want to know?", timeout_s=5).outcome
        return f"My question back was {outcome.outcome} ({outcome.code}): {outcome.reason}"
    return f"{client.profile.name} heard: {text}"


def _leave_with_input() -> None:
    """End with whoever started this program, whatever becomes of it."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    # The broker sees the connection end and tells those who knew this session.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
