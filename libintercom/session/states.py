"""What a session's context is: inactive, live with its session and incarnation, or invalidated. Pure.

Owns the three states and the moves between them (seeds, "Persistence and lifecycle"). Transport, native activity and
queues are apart from it.

Driven so: whoever owns the session keeps one ``Context`` and replaces it by what ``activate``, ``invalidate`` and
``clear`` return; every callback carries the generation (incarnation) it was made for, and ``is_current`` says whether
that one may still checkpoint and deliver.
"""

from __future__ import annotations

from libintercom.wire.record import Record, required
from libintercom.wire.values import STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Union

    Context = Union["Inactive", "Live", "Invalidated"]


class Inactive(Record):
    """No session: nothing was joined yet, or cleaning up is over."""


class Live(Record):
    """``session``: the native ID; ``incarnation``: minted at start, reload or replacement, never on reconnecting."""

    session: str = required(STRING)
    incarnation: str = required(STRING)


class Invalidated(Record):
    """The context is gone, and its transport still cleans up under the session's ID."""

    session: str = required(STRING)


def activate(context: Context, session: str, incarnation: str) -> Live:
    """A context begins. One that lives is invalidated first, for its callbacks may still be under way.

    Raises:
        ValueError: ``context`` is live, or a part of the new one is empty.
    """
    if isinstance(context, Live):
        raise ValueError(f"session {context.session} is still live; invalidate it first")  # noqa: TRY004 - a state, not a type
    if not session or not incarnation:
        raise ValueError("a live context needs a session and an incarnation")
    return Live(session=session, incarnation=incarnation)


def invalidate(context: Context) -> Context:
    """A live context ends; cleaning up keeps its session's ID. Any other stays what it is."""
    return Invalidated(session=context.session) if isinstance(context, Live) else context


def clear(context: Context) -> Context:
    """Cleaning up is over and drops the ID; a live context is no leftover and stays."""
    return Inactive() if isinstance(context, Invalidated) else context


def is_current(context: Context, generation: str) -> bool:
    """Whether what was made for ``generation`` may still checkpoint and deliver."""
    return isinstance(context, Live) and context.incarnation == generation
