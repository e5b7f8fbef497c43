"""Answering a question that waits: which one, on record before the reply leaves, settled by what became of it.

Owns that order, for a program's own replies and for errands alike. Does not own which question a reply means
(``tracker``).
"""

from __future__ import annotations

from libintercom.drafts import choose_id
from libintercom.errors import NoPendingAsk
from libintercom.identity import make_uuid
from libintercom.inbound import Inbound
from libintercom.outcomes import NO_PENDING_ASK, UNKNOWN, not_sent
from libintercom.session.faults import reach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.aio import AsyncClient
    from libintercom.drafts import SendOptions
    from libintercom.outcomes import Outcome
    from libintercom.session.tenure import Tenure


async def reply(
    client: AsyncClient, tenure: Tenure, which: Inbound | str | None, text: str, to: str, options: SendOptions
) -> Outcome:
    """The outcome of a reply; that it left, and that it settled its question, is on record by then."""
    reply_id = choose_id(options, make_uuid)
    try:
        ask = tenure.inbox.tracker.resolve(which.message.id if isinstance(which, Inbound) else which or "", to)
    except NoPendingAsk as error:
        return not_sent(reply_id, NO_PENDING_ASK, error.reason)
    engine = tenure.engine
    refused = await engine.begin_reply(ask.message_id, reply_id)
    if refused:
        return not_sent(reply_id, NO_PENDING_ASK, refused)
    is_accepted = None
    reach("session.reply_leaving")
    try:
        sent: SendOptions = {**options, "message_id": reply_id, "reply_to": ask.message_id}
        outcome = await client.send(ask.sender_id, text, **sent)
        is_accepted = None if outcome.outcome == UNKNOWN else outcome.is_accepted
    finally:
        reach("session.reply_sent")
        engine.end_reply(ask.message_id, reply_id, is_accepted=is_accepted)
    await engine.flush()
    return outcome
