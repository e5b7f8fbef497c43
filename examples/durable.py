"""An agent that loses nothing: what reaches it is on disk first, and after a crash it goes on under the same identity.

It answers every question, and launches a program as its child. Usage: durable.py NAME [COMMAND ARGUMENT…] (Ctrl-C ends)
"""

from __future__ import annotations

import os
import subprocess
import sys

from libintercom import profile_from_environment
from libintercom.identity import child_environment
from libintercom.session import Session, claim_native_id


def main(name: str, *command: str) -> None:
    with claim_native_id(name, os.getcwd()) as claim:
        profile = profile_from_environment(name=name, native_id=claim.native_id)
        with Session.join(profile, native_id=claim.native_id) as session:
            print(f"{name} joined as {session.session_id}. {session.journal_note}", flush=True)
            if command:
                subprocess.Popen(command, env={**os.environ, **child_environment(claim.native_id)})
            for arrival in session.inbound():
                if arrival.message.is_ask:
                    session.reply(arrival, f"You asked: {arrival.message.content.text}")


try:
    main(*sys.argv[1:])
except KeyboardInterrupt:
    sys.exit(130)
