"""Marks a test that stands for a numbered rule of the wire where a vector cannot.

Owns the mark. Does not own the rules (``tests.conformance.catalogue``) nor finding the marks (``coverage`` there).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Test = TypeVar("Test", bound="Callable[..., Any]")


def covers(*rules: str) -> Callable[[Test], Test]:
    """Say which rules a test shows. The marks are read from the source, so ids must be literal."""
    assert rules, "a test covers at least one rule"
    return lambda test: test
