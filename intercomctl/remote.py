"""The console script ``intercom-remote``: runs the packaged copy of the one-file remote command.

Owns finding that copy. It is package data, and the very file that ``intercomctl device install`` copies; what it does
is its own (``remote/entry.py`` in the source tree).
"""

from __future__ import annotations

import os

COPY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "remote_cli")


def read_copy() -> bytes:
    """The one file."""
    with open(COPY, "rb") as file:
        return file.read()


def main() -> None:
    """Run it as the program that it is; it ends this one with its own exit status."""
    exec(compile(read_copy(), COPY, "exec"), {"__name__": "__main__", "__file__": COPY})  # noqa: S102 - our own file


if __name__ == "__main__":
    main()
