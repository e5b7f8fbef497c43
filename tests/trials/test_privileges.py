"""What a trial needs is told when it is missing, and is no reason to leave anything out when it is there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.trials import privileges
from tests.trials.privileges import ROOT, marks_for, missing, missing_of

if TYPE_CHECKING:
    import pytest


def test_programs() -> None:
    assert missing("sh") == ""
    assert missing_of(["no-such-program", "sh", "another-one"]) == "no-such-program, another-one"
    assert [mark.args for mark in marks_for(["sh"])] == [("sh",)]


def test_rights_and_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (missing(ROOT) == "") is (os.geteuid() == 0)
    monkeypatch.setitem(privileges._FACTS, "planted", (lambda: False, "what is not there"))
    assert missing("planted") == "what is not there"
    (skip,) = marks_for(["planted"])
    assert (skip.args, skip.kwargs) == ((True,), {"reason": "it needs what is not there"})
    monkeypatch.setitem(privileges._FACTS, "there", (lambda: True, ""))
    assert marks_for(["there"]) == []
