"""The demonstration: two mains and a child of one of them talk through a broker of their own.

Runs real commands, prints them with their real output, checks what they say, and leaves nothing behind. Exits 1 when
anything differs from what is expected. Usage: demo.py [--token TEXT]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libintercom.identity import NATIVE_ID_VARIABLE, child_environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

COMMAND = Path(sys.executable).with_name("intercomctl")
AGENT = Path(__file__).with_name("agent.py")
# Every step takes a fraction of a second; whatever takes this long hangs.
DEADLINE_S = 10.0
# What a shell of an agent may carry, and this demonstration must not inherit.
PRIVATE_PREFIXES = ("PI_", "INTERCOM_")


class Failed(Exception):
    """Something is not as it should be; the text says what was expected and what was found."""


def main() -> int:
    """Run the demonstration; return the exit status."""
    parser = argparse.ArgumentParser(description="Two mains and a child talk through a broker of their own.")
    parser.add_argument("--token", default="", help="what the reply has to carry back (default: a random word)")
    token = parser.parse_args().token or secrets.token_hex(8)
    started = time.monotonic()
    print(f"token: {token}")
    try:
        with _place() as environment:
            _show(environment, token)
    except Failed as failure:
        print(f"\nFAILED: {failure}", file=sys.stderr)
        return 1
    print(f"\nEverything as expected, nothing left behind. {time.monotonic() - started:.1f} s")
    return 0


def _show(environment: Mapping[str, str], token: str) -> None:
    ann = {NATIVE_ID_VARIABLE: "ann-native-id"}
    scout = child_environment("ann-native-id")
    with contextlib.ExitStack() as stack:
        _tell("A broker starts when it is first needed, here in a directory of its own.")
        stack.callback(_run, environment, ["broker", "stop"], shows=["stopped"])
        _run(environment, ["broker", "start"], shows=["started"])
        _tell("Three programs join: the mains ann and bob, and ann's child scout.")
        for name, lineage in (("ann", ann), ("scout", scout), ("bob", {})):
            stack.enter_context(_agent(name, {**environment, **lineage}))
        _tell("Outside of any session one sees the mains.")
        _run(environment, ["list"], shows=["Main sessions (2)", "• ann (", "• bob ("], hides=["scout"])
        _tell("ann also has a child.")
        _run(environment, ["list"], ann, shows=["Current session", "• bob (", "Child sessions (1)"])
        _tell("Its child sees its main and nobody else: bob is none of its business, not even by name.")
        _run(environment, ["list"], scout, shows=["Main sessions (1)", "• ann ("], hides=["bob"])
        _run(environment, ["send", "bob", "Hello?"], scout, status=1, shows=["Session not found"])
        _tell("A message. The answer says what became of it.")
        _run(environment, ["send", "ann", "The schema change is merged."], shows=["Message sent to ann"])
        _run(environment, ["send", "scout", "Have a look."], scout, shows=["Message sent to scout"])
        _tell("A question, and its reply.")
        _run(environment, ["ask", "bob", f"Repeat: {token}"], shows=["Reply from bob", token])
        _tell("Two sessions that wait for each other would wait for ever: such a question is refused.")
        asked = ["ask", "bob", "Ask me back.", "--as", "operator"]
        _run(environment, asked, shows=["refused (ask_cycle)", "operator", "bob"])
        _tell("Nobody has this name, but somebody has a similar one.")
        unknown = ["Session not found", "Did you mean", "(ann", "intercomctl list"]
        _run(environment, ["send", "anne", "Hello?"], status=1, shows=unknown)
        _tell("Everybody leaves, and the broker ends.")


def _tell(what: str) -> None:
    print(f"\n# {what}")


def _run(
    environment: Mapping[str, str],
    words: Sequence[str],
    more: Mapping[str, str] | None = None,
    *,
    status: int = 0,
    shows: Sequence[str] = (),
    hides: Sequence[str] = (),
) -> None:
    """Run a command, show it with its output, and check both.

    Raises:
        Failed: it ends otherwise than expected, or says something else.

    """
    shown = [f"{name}={value}" for name, value in (more or {}).items()] + ["intercomctl", *map(_quote, words)]
    print(f"$ {' '.join(shown)}", flush=True)
    ended = subprocess.run(
        [COMMAND, *words],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**environment, **(more or {})},
        timeout=DEADLINE_S,
    )
    print(ended.stdout, end="" if ended.stdout.endswith("\n") else "\n")
    if ended.returncode != status:
        raise Failed(f"{shown} ended with status {ended.returncode}, expected {status}")
    for text in shows:
        if text not in ended.stdout:
            raise Failed(f"{shown} does not say {text!r}")
    for text in hides:
        if text in ended.stdout:
            raise Failed(f"{shown} says {text!r}")


def _quote(word: str) -> str:
    return f'"{word}"' if " " in word else word


@contextlib.contextmanager
def _agent(name: str, environment: Mapping[str, str]) -> Iterator[None]:
    """A program that has joined; it leaves at the end."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    # A session of its own: Ctrl-C is for the demonstration, which then ends its agents in order.
    command = [sys.executable, AGENT, name]
    with subprocess.Popen(command, env=dict(environment), start_new_session=True, **pipes) as agent:
        try:
            said = agent.stdout.readline()
            print(said, end="")
            if said != f"{name} joined\n":
                raise Failed(f"the agent {name} did not join")
            yield
        finally:
            _end(name, agent)


def _end(name: str, agent: subprocess.Popen[str]) -> None:
    """The end of its input ends an agent."""
    try:
        agent.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        agent.kill()
        raise Failed(f"the agent {name} did not leave") from None


@contextlib.contextmanager
def _place() -> Iterator[dict[str, str]]:
    """The environment of a broker of our own, in a private directory that is gone afterwards."""
    # Short, since the path of a socket has 100 bytes at most.
    place = tempfile.mkdtemp(prefix="intercom-demo-", dir="/tmp")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(PRIVATE_PREFIXES)}
    try:
        yield {**inherited, "PI_INTERCOM_RUNTIME_DIR": place, "XDG_STATE_HOME": f"{place}/state"}
        if os.path.lexists(f"{place}/broker.sock"):
            raise Failed("the broker left its socket behind")
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    sys.exit(main())
