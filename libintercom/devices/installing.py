"""Copying the one-file remote command to a device over the user's ssh (devices.md section 3).

Owns that single copy: written beside its place, checked by its digest, then renamed into it. It places no file where
another package keeps its own. Does not own who asks for it.
"""

from __future__ import annotations

import json
import subprocess
from hashlib import sha256

from libintercom.devices.command import INSTALL_FOLDER, INSTALL_NAME, SSH_STATUS, ssh_arguments
from libintercom.devices.results import FAILED, NO_INTERPRETER, UNREACHABLE
from libintercom.errors import EXIT_REFUSED, EXIT_UNREACHABLE, IntercomError
from libintercom.printable import make_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The program comes on standard input too: no shell on the way reads anything but this line.
_COMMAND = "python3 -I -c 'import sys; exec(eval(sys.stdin.buffer.readline()))'"
# A quarter of a megabyte over a slow line; ConnectTimeout covers the way to it.
_TIMEOUT_S = 120.0
_NOT_RUN_STATUS = 127
_MAX_REASON_CHARS = 500

_PROGRAM = """
import hashlib, json, os, sys
folder = os.path.join(os.path.expanduser("~"), {folder!r})
place, beside = os.path.join(folder, {name!r}), os.path.join(folder, "." + {name!r} + ".new")
text = sys.stdin.buffer.read()
if sys.version_info < (3, 9):
    sys.exit("its python3 is older than 3.9")
if hashlib.sha256(text).hexdigest() != {digest!r}:
    sys.exit("the copy arrived damaged; nothing was changed")
os.makedirs(folder, mode=0o700, exist_ok=True)
try:
    with open(place, "rb") as file:
        before = hashlib.sha256(file.read()).hexdigest()
except FileNotFoundError:
    before = ""
descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o700)
with os.fdopen(descriptor, "wb") as file:
    file.write(text)
    file.flush()
    os.fsync(file.fileno())
os.replace(beside, place)
with open(place, "rb") as file:
    after = hashlib.sha256(file.read()).hexdigest()
print()
print(json.dumps({{"version": 1, "path": place, "before": before, "after": after, "python": sys.version.split()[0]}}))
"""


class NotInstalled(IntercomError):
    """The copy is not there; ``code`` is one of ``results``' words for a device that took nothing."""

    def __init__(self, device: str, code: str, reason: str) -> None:
        super().__init__(device, code, reason)
        self.device, self.code, self.reason = device, code, reason
        self.exit_status = EXIT_REFUSED if code == FAILED else EXIT_UNREACHABLE

    def __str__(self) -> str:
        if self.code == UNREACHABLE:
            return f"Not installed on {self.device}: unreachable ({self.reason})"
        return f"Not installed on {self.device}: {self.reason}"


class Installation:
    """What was copied: ``path`` there, ``digest`` (SHA-256), the ``python`` version, and what stood there ``before``.

    ``before`` is the digest of the earlier copy, "" for none.
    """

    def __init__(self, device: str, told: dict[str, Any]) -> None:
        self.device, self.path, self.digest = device, str(told.get("path")), str(told.get("after"))
        self.before, self.python = str(told.get("before")), str(told.get("python"))


def install(device: str, text: bytes, program: str = "ssh") -> Installation:
    """Copy the one file to a configured device.

    Raises:
        NotInstalled: it is not there, or nobody can tell; an earlier copy stays whole.
    """
    digest = sha256(text).hexdigest()
    line = repr(_PROGRAM.format(folder=INSTALL_FOLDER, name=INSTALL_NAME, digest=digest)).encode() + b"\n"
    try:
        ended = subprocess.run(  # noqa: S603 - fixed arguments; a device's name is checked and stands behind "--"
            ssh_arguments(device, _COMMAND, program),
            input=line + text,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotInstalled(device, UNREACHABLE, f"no answer within {_TIMEOUT_S:g} s") from None
    except OSError as failure:
        raise NotInstalled(device, UNREACHABLE, f"cannot run {program}: {failure.strerror}") from None
    told = _last_object(ended.stdout)
    if ended.returncode == 0 and told.get("after") == digest:
        return Installation(device, told)
    raise _failure(device, ended)


def _failure(device: str, ended: subprocess.CompletedProcess[bytes]) -> NotInstalled:
    lines = [line.strip() for line in ended.stderr.decode("utf-8", "replace").splitlines()]
    said = next((make_line(line)[:_MAX_REASON_CHARS] for line in reversed(lines) if line), "")
    if ended.returncode == SSH_STATUS:
        return NotInstalled(device, UNREACHABLE, said.removeprefix("ssh: "))
    if ended.returncode == _NOT_RUN_STATUS:
        return NotInstalled(device, NO_INTERPRETER, "python3 is not on the PATH of its SSH commands")
    return NotInstalled(device, FAILED, said or f"its python3 ended with status {ended.returncode} and without a word")


def _last_object(output: bytes) -> dict[str, Any]:
    """The last line that is a JSON object; notices of the device may stand before and behind it."""
    for line in reversed(output.splitlines()):
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if isinstance(told, dict):
            return told
    return {}
