"""The one command that ssh runs on every device, and the lines by which it is known to have begun.

Owns the constant text and ssh's arguments. Nothing of a request ever stands in either: a request is written to
standard input, behind the marker line. Does not own running it (``openssh``).
"""

from __future__ import annotations

# The seeds' four options, and nothing else: ports, users, jump hosts, agents, hardware keys and multiplexing are the
# user's own configuration.
SSH_OPTIONS = (
    "-o", "BatchMode=yes",
    "-o", "ConnectTimeout=10",
    "-o", "ServerAliveInterval=5",
    "-o", "ServerAliveCountMax=2",
)  # fmt: skip

# Who printed which line just before it took over. Only behind one of them a request is written.
OURS, NODE = "1", "node"
MARKERS = {b"intercom-remote 1": OURS, b"intercom-remote node": NODE}
# What each of them is run by, when it is not a program of its own.
INTERPRETERS = {OURS: "python3", NODE: "node"}

# Where our one file is copied to by ``intercomctl device install``, below the home directory.
INSTALL_FOLDER = ".local/share/intercom"
INSTALL_NAME = "remote_cli.py"
_NODE_COPIES = (
    "~/.pi/agent/git/github.com/fitchmultz/pi-subagents/dist/pi-intercom/remote-cli.js",
    "~/.pi/agent/npm/node_modules/@fitchmultz/pi-subagents/dist/pi-intercom/remote-cli.js",
)
# Termux does not have its prefix on the PATH of every command that ssh runs.
_TERMUX_COPY = "/data/data/com.termux/files/usr/bin/intercom-remote"

# How the remote command ends without any of them; and how shells end when a program cannot be run or is not there.
NO_COMMAND_STATUS = 44
NOT_RUN_STATUSES = (126, 127)
# How ssh ends when it failed itself. A remote command may end like that too: only a marker line separates the two.
SSH_STATUS = 255


def _step(test: str, path: str, marker: str, *interpreter: str) -> str:
    return f"test {test} {path} && echo intercom-remote {marker} && exec {' '.join([*interpreter, path])}"


# Only what sh, dash, bash, zsh, fish and tcsh all read alike. The first line is empty, so that a prompt or a notice
# without an end of line does not swallow the marker.
REMOTE_COMMAND = "; ".join((
    "echo",
    _step("-x", "~/.local/bin/intercom-remote", OURS),
    _step("-f", f"~/{INSTALL_FOLDER}/{INSTALL_NAME}", OURS, "python3", "-I"),
    _step("-x", _TERMUX_COPY, OURS),
    *(_step("-f", path, NODE, "node") for path in _NODE_COPIES),
    f"exit {NO_COMMAND_STATUS}",
))  # fmt: skip


def ssh_arguments(device: str, command: str = REMOTE_COMMAND, program: str = "ssh") -> list[str]:
    """The command line of one request; ``--`` ends the options whatever the device is called."""
    return [program, *SSH_OPTIONS, "--", device, command]
