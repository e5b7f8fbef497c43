"""The limits and their defaults."""

from __future__ import annotations

import pytest

from libintercom.session.journal import DEFAULT_RETENTION, Retention


def test_each_limit_has_a_default() -> None:
    assert Retention() == DEFAULT_RETENTION
    assert Retention(keep_ms=5).max_bytes == DEFAULT_RETENTION.max_bytes
    # Longer than a broker keeps anything for a session that is away.
    assert DEFAULT_RETENTION.keep_ms > 7 * 24 * 60 * 60 * 1000


def test_limits_do_not_change() -> None:
    with pytest.raises(AttributeError):
        DEFAULT_RETENTION.keep_ms = 1  # type: ignore[misc]
