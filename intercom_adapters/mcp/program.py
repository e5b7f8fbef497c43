"""`intercom-mcp`: join as a session, offer the tool on standard input and output, leave when the input ends.

Owns the command line, the order of joining and leaving, and how the program ends. Nothing of it writes to standard
output: that is the protocol's.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec

from libintercom.asking import DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S
from libintercom.errors import EXIT_INTERRUPTED, EXIT_USAGE, IntercomError
from libintercom.printable import make_printable
from libintercom.version import __version__

PROGRAM = "intercom-mcp"
# What others read as the model of a session whose host does not say.
_MODEL = "mcp"
_ABOUT = (
    "An MCP server on standard input and output: it joins the broker of this user as one session and offers the tool "
    '"intercom" to one agent. It is started by an MCP client; see the README for the lines of its configuration.'
)


def main() -> None:
    """Serve until standard input ends; the exit status says how it went (house rules of intercomctl)."""
    chosen = _parse(sys.argv[1:])
    try:
        status = _serve(chosen)
    except IntercomError as failure:
        _say(str(failure))
        status = failure.exit_status
    except KeyboardInterrupt:
        status = EXIT_INTERRUPTED
    sys.stderr.flush()
    # A thread of the protocol's package may still stand in a read of standard input, and would be waited for.
    os._exit(status)


def _serve(chosen: argparse.Namespace) -> int:
    # Imported here: a mistake in the environment is told before half a second of imports.
    from libintercom.identity import find_native_id
    from libintercom.profile import profile_from_environment

    native_id = find_native_id(chosen.session_id)
    profile = profile_from_environment(name=chosen.name, model=chosen.model, native_id=native_id, status="idle")
    if find_spec("mcp") is None:
        _say("the package mcp is not installed beside this program. Install it: pip install 'intercomd[mcp]'")
        return EXIT_USAGE
    import asyncio

    from intercom_adapters.mcp.running import run

    return asyncio.run(run(profile, native_id, chosen.ask_timeout))


def _parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=PROGRAM, description=_ABOUT)
    parser.add_argument("--session-id", metavar="ID", help="the native session ID (else INTERCOM_NATIVE_SESSION_ID)")
    parser.add_argument("--name", metavar="NAME", help="the name under which others see this session")
    parser.add_argument("--model", metavar="TEXT", default=_MODEL, help="what others read as its model")
    parser.add_argument(
        "--ask-timeout",
        metavar="SECONDS",
        type=_seconds,
        default=DEFAULT_TIMEOUT_S,
        help=f"how long an ask waits for its reply (default: {DEFAULT_TIMEOUT_S:g})",
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    return parser.parse_args(words)


def _seconds(text: str) -> float:
    seconds = float(text)
    # Written so that "not a number" fails as well.
    if not 0 < seconds <= MAX_TIMEOUT_S:
        raise argparse.ArgumentTypeError(f"more than 0 and at most {MAX_TIMEOUT_S:g} seconds, not {text}")
    return seconds


def _say(text: str) -> None:
    sys.stderr.write(f"{PROGRAM}: {make_printable(text)}\n")
