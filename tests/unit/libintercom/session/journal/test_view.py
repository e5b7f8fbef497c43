"""The reading connection: it stays at one state between foldings, and lets go when it must."""

from __future__ import annotations

from typing import TYPE_CHECKING

from libintercom.session.journal.view import View
from tests.support.journaled import WAIT_S, admitted

if TYPE_CHECKING:
    from libintercom.session.journal import Journal


def test_it_stays_until_it_is_released_and_then_sees_the_newest(journal: Journal) -> None:
    view = View(journal.path)
    assert view.place("m1") == (0, 0)
    journal.append([admitted("m1")]).wait(WAIT_S)
    journal._writer.close()
    journal._writer.fold()
    assert view.place("m1") == (0, 0)
    view.release()
    assert view.place("m1") == (1, 1)
    assert [entry.message_id for _number, entry, _size in view.chain(1)] == ["m1"]
    assert view.unfinished(0, 10) == [(1, "m1")]
    view.close()


def test_it_does_not_stay_while_the_log_is_to_start_anew(journal: Journal) -> None:
    view = View(journal.path)
    view.may_stay = False
    assert view.place("m1") == (0, 0)
    assert not view._connection.in_transaction
    view.close()
