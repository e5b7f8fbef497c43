"""The host's history: a line that a kill cut short was never written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from tests.trials.crash.native import History, read_history

if TYPE_CHECKING:
    from pathlib import Path


def one(message_id: str) -> SimpleNamespace:
    return SimpleNamespace(message=SimpleNamespace(id=message_id, content=SimpleNamespace(text="text")))


def test_half_a_line_is_none(tmp_path: Path) -> None:
    path = tmp_path / "history"
    History(str(path), 0).write(one("m1"))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    assert [line["id"] for line in read_history(str(path))] == ["m1"]
    again = History(str(path), 1)
    assert again.find("m1")
    again.write(one("m2"))
    assert [(line["id"], line["life"]) for line in read_history(str(path))] == [("m1", 0), ("m2", 1)]
