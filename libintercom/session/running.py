"""Running an errand in the session that holds the journal: looking, or answering, for another program of it.

Owns what is answered. Does not own the errand's form (``errands``).
"""

from __future__ import annotations

import json

from libintercom.session import errands
from libintercom.session.replying import reply
from libintercom.session.views import pending_views, shorten
from libintercom.wire.record import dump_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from libintercom.aio import AsyncClient
    from libintercom.inbound import Inbound
    from libintercom.session.errands import Errand
    from libintercom.session.tenure import Tenure


async def run_errand(client: AsyncClient, tenure: Tenure, inbound: Inbound, errand: Errand) -> None:
    """Do what the errand asks for and answer it; its own question is none of this session's."""
    client.pending.settle(inbound.message.id)
    answer = {"v": errands.VERSION, **await _run(client, tenure, errand)}
    await client.send(inbound.row.id, json.dumps(answer), reply_to=inbound.message.id)


async def _run(client: AsyncClient, tenure: Tenure, errand: Errand) -> dict[str, Any]:
    if errand.action == errands.PENDING:
        return {"pending": [shorten(view) for view in pending_views(tenure.inbox)]}
    if errand.text is None:
        return {"error": "a reply needs a text"}
    outcome = await reply(client, tenure, errand.reply_to, errand.text, errand.to or "", {})
    return {"outcome": dump_record(outcome)}
