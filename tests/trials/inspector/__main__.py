"""List and call the agents' tool with the MCP inspector's command line; exits with 1 on a violation.

Installs the inspector from npm where it is not installed yet.
"""

from __future__ import annotations

import sys

from tests.support.daemon import running_daemon
from tests.trials.command import Command
from tests.trials.inspector import driving, errands


def main() -> int:
    command = Command("inspector", __doc__)
    try:
        driving.install()
    except driving.Unavailable as unavailable:
        command.skip("the inspector", str(unavailable))
        return command.end([])
    with running_daemon("--idle-exit-s", "600") as daemon:
        return command.end(errands.run(daemon, command.say))


if __name__ == "__main__":
    sys.exit(main())
