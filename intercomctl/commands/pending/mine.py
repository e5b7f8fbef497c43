"""`intercomctl pending --mine`: replies that came after one's own `ask` had ended.

Owns fetching them, and that a reply leaves the broker only once it was printed. Does not own the file of each question
(``intercomctl.keeping``) nor the broker's side of it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from intercomctl import joining, keeping, output, shapes
from libintercom import texts
from libintercom.errors import EXIT_DONE
from libintercom.list_texts import age_text
from libintercom.printable import make_line

if TYPE_CHECKING:
    from typing import Any

    from intercomctl.keeping import KeptAsk
    from libintercom.client import Client
    from libintercom.outcomes import LateReply

# The states of a kept question, as the broker has them.
_REPLIED = "replied"
_ENDS = {
    "expired": "its time is over and no reply came",
    "unknown": "the broker does not know it (any more)",
}


def show(as_name: str | None, session_id: str | None, *, as_json: bool) -> int:
    """Fetch and print what came, and say what did not."""
    kept = keeping.kept_asks()
    if not kept:
        _say_none(as_json=as_json)
        return EXIT_DONE
    with joining.speak(as_name, session_id) as client:
        found = [(one, client.fetch_reply(one.message_id, one.reply_token)) for one in kept]
        if as_json:
            output.emit({"mine": [_shape(one, late) for one, late in found]})
        else:
            now_ms = int(time.time() * 1000)
            output.say("\n\n".join(_text(one, late, now_ms) for one, late in found))
        # Printed, so nobody asks the broker again.
        for one, late in found:
            _settle(client, one, late)
    return EXIT_DONE


def _say_none(*, as_json: bool) -> None:
    if as_json:
        output.emit({"mine": []})
    else:
        output.say("No reply is kept, and none is waited for.")


def _settle(client: Client, one: KeptAsk, late: LateReply) -> None:
    if late.state == _REPLIED and output.is_read():
        client.ack_reply(one.message_id, one.reply_token)
        keeping.drop(one.message_id)
    elif late.state in _ENDS:
        keeping.drop(one.message_id)


def _text(one: KeptAsk, late: LateReply, now_ms: int) -> str:
    if late.reply is not None:
        return texts.reply_text(one.to, late.reply)
    what = f"Question {make_line(one.message_id)} to {make_line(one.to)}, asked {age_text(one.asked_at_ms, now_ms)}"
    return f"{what}: {_ENDS.get(late.state, 'no reply yet')}."


def _shape(one: KeptAsk, late: LateReply) -> dict[str, Any]:
    told = {"messageId": one.message_id, "to": one.to, "askedAtMs": one.asked_at_ms, "state": late.state}
    return told if late.reply is None else {**told, "reply": shapes.reply(late.reply)}
