"""What arrives on a session's connection, and where each goes: the inbox, a reader, an errand, whoever watches.

Owns the recipient's check of guards before the first checkpoint, the application guard, presence, and telling the bus.
Does not own the connection (``reconnecting``) nor what follows from a message (``inbox``).
"""

from __future__ import annotations

import asyncio
import json

from libintercom.errors import IntercomError
from libintercom.inbound import AskEnded, Inbound, PeerLeft
from libintercom.member import now_ms
from libintercom.session import errands, serving
from libintercom.session.bus import RECEIPT_NOT_FOUND, VERSION, Attachment, Bus, StaleTarget
from libintercom.session.guards import OwnContext, find_fault
from libintercom.session.presenting import Presenting
from libintercom.session.states import Live
from libintercom.session.views import pending_views, shorten
from libintercom.wire.reads import ReadError
from libintercom.wire.record import dump_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Any

    from libintercom.aio import AsyncClient
    from libintercom.session.background import BackgroundErrors
    from libintercom.session.errands import Errand
    from libintercom.session.host import Host
    from libintercom.session.tenure import Tenure
    from libintercom.wire.record import Record

# What ``AskEnded`` says of questions that the client's own list, which nobody reads here, had no room for.
_EVICTED = "evicted"
