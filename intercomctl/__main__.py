"""The program's entry: the two commands that must start fast go straight to their work, the rest to the framework.

Owns that decision and nothing else. Both ways read the same declarations (``options``) and end in the same place
(``failures.guard``).
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from intercomctl.options import Command

# bars.md: `list` and `send` start within 12 bare interpreter starts; importing the framework alone takes 8.
HOT = ("list", "send")


def main() -> None:
    """Run the command line of this process and end it with the exit status."""
    try:
        # Imported here: an interrupt while they load is an interrupt, and no traceback.
        from intercomctl import failures, output

        output.prepare()
        status = failures.guard(lambda: run(sys.argv[1:]))
    except KeyboardInterrupt:
        # 128 and SIGINT's number, as in ``libintercom.errors``; nothing had begun, so there is nothing to say.
        status = 130
    sys.exit(status)


def run(words: Sequence[str]) -> int:
    """Run one command line (without the program's name); return the exit status."""
    status = _run_hot(words) if words and words[0] in HOT else None
    if status is None:
        from intercomctl.main import main as run_framework

        status = run_framework(words)
    return status


def _run_hot(words: Sequence[str]) -> int | None:
    from intercomctl import failures, options

    command = _hot_command(words[0])
    values = options.parse(command, words[1:])
    return None if values is None else failures.run_command(command, values)


def _hot_command(name: str) -> Command:
    if name == "list":
        from intercomctl.commands import list as listing

        return listing.COMMAND
    from intercomctl.commands import send

    return send.COMMAND


if __name__ == "__main__":
    main()
