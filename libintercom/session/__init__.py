"""A session's end: what one program does with what reaches it, so that nothing admitted is lost.

Owns the names that programs import from here; each loads its module on first use. The pure modules (``entries``,
``states``, ``inbox``, ``tracker``, ``framing``, ``pages``, ``receipts``, ``guards`` and what they stand on) decide; the
others read, write and wait for them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.session.aio import AsyncSession
    from libintercom.session.blocking import Session
    from libintercom.session.bus import Bus
    from libintercom.session.companion import Companion, connect_intercom
    from libintercom.session.feed import Arrival
    from libintercom.session.host import QueueHost
    from libintercom.session.native import claim_native_id

_HOMES = {
    "Arrival": "feed",
    "AsyncSession": "aio",
    "Bus": "bus",
    "Companion": "companion",
    "QueueHost": "host",
    "Session": "blocking",
    "claim_native_id": "native",
    "connect_intercom": "companion",
}

__all__ = [
    "Arrival",
    "AsyncSession",
    "Bus",
    "Companion",
    "QueueHost",
    "Session",
    "claim_native_id",
    "connect_intercom",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
