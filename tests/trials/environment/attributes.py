"""``python attributes.py SPECIFICATION PROGRAM ARGUMENT...``: give a process hostile attributes, then become PROGRAM.

Owns what a program inherits besides its environment. SPECIFICATION is a JSON object, every member optional: ``umask``,
``close`` (standard streams), ``open`` (how many inheritable descriptors), ``ignore`` and ``block`` (signals), and
``limits`` (name of an RLIMIT to its soft value).
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys


def main() -> None:
    specification = json.loads(sys.argv[1])
    if "umask" in specification:
        os.umask(specification["umask"])
    for number in specification.get("ignore", ()):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, specification.get("block", ()))
    _open(specification.get("open", 0))
    for name, soft in specification.get("limits", {}).items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))
    for fd in specification.get("close", ()):
        os.close(fd)
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - it becomes the program, with all of this


def _open(count: int) -> None:
    """Leave so many descriptors open for whoever is started."""
    if count:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 64), hard))
    for _ in range(count):
        os.set_inheritable(os.open("/dev/zero", os.O_RDONLY), True)


if __name__ == "__main__":
    main()
