"""A program with a session of its own, for tests that kill it: it does what lines of JSON on its stdin say.

Owns the verbs below; each answers with one line of JSON. Run as ``python -m tests.support.session_actor NAME NATIVE
[POINT COUNT]``: with a fault point it kills itself when it gets there for the COUNTth time.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from typing import TYPE_CHECKING, Any

from libintercom.profile import profile_from_environment
from libintercom.session import faults
from libintercom.session.blocking import Session

if TYPE_CHECKING:
    from collections.abc import Callable

# Nothing more comes within this: a test asked for a message too many.
_TAKE_TIMEOUT_S = 10.0


def take(session: Session, timeout_s: float = _TAKE_TIMEOUT_S) -> Any:
    arrival = session.next_inbound(timeout_s)
    return None if arrival is None else {"id": arrival.message.id, "text": arrival.message.content.text}


def reply(session: Session, text: str, which: str | None = None) -> Any:
    return session.reply(which, text).outcome


def ask(session: Session, to: str, text: str) -> Any:
    answered = session.ask(to, text, timeout_s=_TAKE_TIMEOUT_S)
    return None if answered.reply is None else answered.reply.message.id


def limit_files(_session: Session, size_bytes: int) -> Any:
    """No file of this process may grow past this size: what a full disk looks like. -1 ends that."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if size_bytes < 0 else size_bytes, hard))
    return True


def leave(session: Session) -> Any:
    session.leave()
    return True


VERBS: dict[str, Callable[..., Any]] = {
    "take": take,
    "reply": reply,
    "ask": ask,
    "leave": leave,
    "limit_files": limit_files,
    "pending": lambda session: session.pending(),
    "note": lambda session: session.journal_note,
    "send": lambda session, to, text: session.send(to, text).outcome,
}


def die_at(point: str, count: int) -> None:
    """Be killed at the ``count``th arrival at a fault point."""
    left = count

    def hook(reached: str) -> None:
        nonlocal left
        left -= reached == point
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    faults.set_hook(hook)


def main(name: str, native_id: str, point: str = "", count: str = "1") -> None:
    if point:
        die_at(point, int(count))
    session = Session.join(profile_from_environment(name=name), native_id=native_id)
    print(json.dumps(session.session_id), flush=True)
    for line in sys.stdin:
        verb, *arguments = json.loads(line)
        print(json.dumps(VERBS[verb](session, *arguments)), flush=True)
    session.leave()


if __name__ == "__main__":
    main(*sys.argv[1:])
