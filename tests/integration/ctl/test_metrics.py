"""`intercomctl metrics` on a real broker: figures that a scraper can read, and that add up."""

from __future__ import annotations

import re

SAMPLE = re.compile(r'[a-zA-Z_][a-zA-Z0-9_]*(\{kind="[^"]*"\})? -?[0-9.]+')
TERMINALS = {"delivered", "replaced", "drained", "fetched"}


def test_every_line_is_a_type_or_a_sample(ctl):
    ended = ctl.run("metrics")
    assert (ended.status, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[:2] == ["# TYPE intercom_up gauge", "intercom_up 1"]
    assert all(line.startswith("# TYPE ") or SAMPLE.fullmatch(line) for line in lines)


def test_messages_and_sessions_are_counted(ctl):
    before = ctl.run("metrics", "--json").json
    with ctl.joined("bob") as bob:
        ctl.run("send", "bob", "x")
        bob.hear("message")
        ctl.run("send", "nobody", "x")
        after = ctl.run("metrics", "--json").json
        assert "intercom_sessions 1\n" in ctl.run("metrics").out
    assert set(after) == {"version", "counters", "gauges"}
    for name in ("accepted", "delivered"):
        assert after["counters"][name] == before["counters"][name] + 1
    assert after["gauges"]["sessions"] == before["gauges"]["sessions"] + 1


def test_what_is_accepted_adds_up(ctl):
    shown = ctl.run("metrics", "--json").json
    counters, gauges = shown["counters"], shown["gauges"]
    ended = sum(count for name, count in counters.items() if name in TERMINALS or name.startswith("dead_"))
    assert counters["accepted"] == ended + sum(gauges[name] for name in ("buffered", "staged", "parked", "kept"))
