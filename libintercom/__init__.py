"""The intercom library: wire, identity, paths and clients. Standard library only, Python 3.9 or newer.

Owns the names that programs import from here; each loads its module on first use, so importing this package, or one
module of it, costs nothing else.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.aio import AsyncClient
    from libintercom.client import Client
    from libintercom.errors import Disconnected, IntercomError, NotRegistered, NotRunning, TimedOut, Unsupported
    from libintercom.inbound import AskEnded, ConnectionEnded, Inbound, LetterDied, PeerLeft
    from libintercom.outcomes import Answered, Listing, Outcome
    from libintercom.pending import PendingAsks
    from libintercom.profile import Profile, profile_from_environment
    from libintercom.sending import Timeouts
    from libintercom.version import __version__
    from libintercom.wire.messages import Attachment, Message, Row

_HOMES = {
    "aio": ("AsyncClient",),
    "client": ("Client",),
    "errors": ("Disconnected", "IntercomError", "NotRegistered", "NotRunning", "TimedOut", "Unsupported"),
    "inbound": ("AskEnded", "ConnectionEnded", "Inbound", "LetterDied", "PeerLeft"),
    "outcomes": ("Answered", "Listing", "Outcome"),
    "pending": ("PendingAsks",),
    "profile": ("Profile", "profile_from_environment"),
    "sending": ("Timeouts",),
    "version": ("__version__",),
    "wire.messages": ("Attachment", "Message", "Row"),
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Answered",
    "AskEnded",
    "AsyncClient",
    "Attachment",
    "Client",
    "ConnectionEnded",
    "Disconnected",
    "Inbound",
    "IntercomError",
    "LetterDied",
    "Listing",
    "Message",
    "NotRegistered",
    "NotRunning",
    "Outcome",
    "PeerLeft",
    "PendingAsks",
    "Profile",
    "Row",
    "TimedOut",
    "Timeouts",
    "Unsupported",
    "__version__",
    "profile_from_environment",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
