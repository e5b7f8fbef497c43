"""Which of the known systems this is. Owns the names and the tests for them; owns no path and no rule."""

from __future__ import annotations

import sys

LINUX = "linux"
MACOS = "darwin"
ANDROID = "android"


def current_platform() -> str:
    """``linux``, ``darwin``, ``android``, or whatever Python calls another system.

    Android says so from Python 3.13 on; before, only its interpreters have ``sys.getandroidapilevel``.
    """
    if sys.platform == ANDROID or hasattr(sys, "getandroidapilevel"):
        return ANDROID
    return LINUX if sys.platform.startswith(LINUX) else sys.platform
