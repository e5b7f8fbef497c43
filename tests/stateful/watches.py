"""Every invariant that is looked at after each step."""

from __future__ import annotations

from tests.stateful.message_watches import Balance, OneAnswer, Order, Quotas, TakenFirst
from tests.stateful.read_watches import Guards, Reads
from tests.stateful.session_watches import Deadlines, LeftOnce, OneEnd, Visibility

WATCHES = (OneAnswer, TakenFirst, Visibility, Order, Quotas, Balance, OneEnd, Reads, Guards, Deadlines, LeftOnce)
