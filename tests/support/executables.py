"""Programs in the place of ``intercomd`` that go wrong before they become it.

Owns writing one: an executable that runs some Python first and then, if it still lives, is the real broker from this
checkout. A starter runs it through the setting ``executable``.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def write_executable(path: Path, *, before: str = "", options: str = "") -> Path:
    """A program at ``path``; ``before`` is Python that runs first, ``options`` are added to its command line."""
    lines = [
        f"#!{sys.executable} -I",
        "import os, sys",
        f"sys.path.insert(0, {str(ROOT)!r})",
        before,
        f"sys.argv += {options.split()!r}",
        "from intercomd.__main__ import main",
        "sys.exit(main())",
    ]
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o755)
    return path
