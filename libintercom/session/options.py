"""What may be chosen when joining, the same for both twins.

Owns the names and their defaults. Does not own what they mean in detail (``aio``, ``host``, ``journal``).
"""

from __future__ import annotations

from libintercom.paths import find_places
from libintercom.session.background import BackgroundErrors
from libintercom.session.host import QueueHost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypedDict

    from libintercom.paths import Places
    from libintercom.sending import Timeouts
    from libintercom.session.background import BackgroundError
    from libintercom.session.bus import Bus
    from libintercom.session.host import Host
    from libintercom.session.journal import Journal
    from libintercom.wire.record import Record

    class JoinOptions(TypedDict, total=False):
        """Absent and the default mean the same.

        ``host``: a ``QueueHost`` unless given. ``spawn`` (true): a broker is started, now and whenever it is missed, if
        the start policy allows it. ``places``, ``timeouts``: as for clients. ``journal``: true (the one of the native
        id), false, or one that the caller opened. ``bus``: companions are answered on it. ``on_background_error`` and
        ``on_notice`` (``PeerLeft``, ``AskEnded``, ``LetterDied``) are called on the session's loop and must not raise.
        """

        host: Host | None
        spawn: bool
        places: Places | None
        timeouts: Timeouts | None
        journal: Journal | bool
        bus: Bus | None
        on_background_error: Callable[[BackgroundError], object] | None
        on_notice: Callable[[Record], object] | None


class Watchers:
    """Who watches a session: companions on a ``bus``, and ``on_notice`` (``JoinOptions``)."""

    __slots__ = ("bus", "on_notice")

    def __init__(self, bus: Bus | None, on_notice: Callable[[Record], object] | None) -> None:
        self.bus, self.on_notice = bus, on_notice


_NAMES = frozenset(
    {"host", "spawn", "places", "timeouts", "journal", "bus", "on_background_error", "on_notice"},
)


class Chosen:
    """The options of one session, defaults filled in."""

    def __init__(self, options: JoinOptions) -> None:
        unknown = options.keys() - _NAMES
        if unknown:
            raise TypeError(f"no such option: {', '.join(sorted(unknown))}")
        places = options.get("places")
        host = options.get("host")
        self.host: Host = QueueHost() if host is None else host
        self.journal: Journal | bool = options.get("journal", True)
        self.watchers = Watchers(options.get("bus"), options.get("on_notice"))
        self.errors = BackgroundErrors(options.get("on_background_error"), (places or find_places()).agent_dir)
        # None leaves the folder to the journal.
        self.journal_folder = None if places is None else places.journals
        self.client: dict[str, Any] = {
            "spawn": options.get("spawn", True),
            "places": places,
            "timeouts": options.get("timeouts"),
        }
