"""IDs that UTF-8 has no form for: a peer can put a lone surrogate into one, and the journal must keep it apart."""

from __future__ import annotations

import pytest

from libintercom.session.entries import Entry
from libintercom.session.journal import Journal

# Beside each other: replaced or dropped surrogates would make one of two.
IDS = ["plain", "a\ud800b", "a\udfffb", "a\ufffdb", '"a\\ud800b"', "\U0001f600"]


def admitted(message_id: str) -> Entry:
    body = {"from": {"id": "p"}, "message": {"id": message_id}, "receivedAt": 1, "textSha256": "0" * 64}
    return Entry(entry_id=f"e-{IDS.index(message_id)}", message_id=message_id, kind="admitted", at_ms=1, body=body)


@pytest.mark.parametrize("reopened", [False, True])
def test_every_id_is_found_again_and_no_other(tmp_path, reopened):
    folder = str(tmp_path / "journals")
    journal = Journal.open("native", folder=folder)
    for message_id in IDS[:-1]:
        journal.append([admitted(message_id)]).wait(10)
    if reopened:
        journal.close()
        journal = Journal.open("native", folder=folder)
    with journal:
        for message_id in IDS[:-1]:
            standing = journal.find(message_id)
            assert standing is not None
            assert (standing.message_id, standing.admitted.entry_id) == (message_id, admitted(message_id).entry_id)
            assert [row.message_id for row in journal.receipt_rows(message_id)] == [message_id]
        assert journal.find(IDS[-1]) is None
        assert [standing.message_id for standing in journal.unfinished()] == IDS[:-1]
