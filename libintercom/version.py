"""The one version number of the distribution, the wire hello and ``--version``.

Owns a literal and nothing else, so that the build backend can read it without importing anything.
"""

from __future__ import annotations

# Raised with CHANGELOG.md, newest entry first.
__version__ = "0.1.0"
