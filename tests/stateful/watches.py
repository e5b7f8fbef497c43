"""Every invariant that is looked at after each step."""

from __future__ import annotations

from tests.stateful.message_watches import Balance, OneAnswer, Order, Quotas, Survival, TakenFirst
from tests.stateful.read_watches import Guards, Reads
from tests.stateful.session_watches import Deadlines, LeftOnce, OneEnd, Visibility

MESSAGES = (OneAnswer, TakenFirst, Visibility, Order, Quotas, Survival, Balance)
WATCHES = (*MESSAGES, OneEnd, Reads, Guards, Deadlines, LeftOnce)
