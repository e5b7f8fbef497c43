"""The Pythons of this machine on which the one-file remote command has to run.

Owns finding them: named by ``INTERCOM_PYTHON39``, ``INTERCOM_PYTHON311`` and so on, on PATH, or among pyenv's versions.
"""

from __future__ import annotations

import functools
import glob
import os
import shutil
import subprocess

VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")


@functools.cache
def interpreter(version: str) -> str:
    """The absolute path of a Python of this version that runs, or an empty text."""
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    candidates = [
        os.environ.get("INTERCOM_PYTHON" + version.replace(".", ""), ""),
        shutil.which(f"python{version}") or "",
        *sorted(glob.glob(f"{pyenv}/versions/{version}.*/bin/python{version}"), reverse=True),
    ]
    return next((found for path in candidates if path and (found := _real_path(path, version))), "")


def _real_path(path: str, version: str) -> str:
    """The interpreter itself where ``path`` leads to one of this version, also through a launcher."""
    script = f"import sys; print(sys.executable if '%d.%d' % sys.version_info[:2] == {version!r} else '')"
    try:
        ended = subprocess.run([path, "-I", "-c", script], capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ended.stdout.strip()
