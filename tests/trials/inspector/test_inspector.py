"""The MCP inspector's command line lists and calls the tool; only where `make inspector` installed it.

It comes from npm: a test that would fetch it fails whenever a network does, so fetching is the command's.
"""

from __future__ import annotations

import pytest

from tests.support.daemon import running_daemon
from tests.trials.inspector import driving, errands


@pytest.mark.skipif(bool(driving.missing()), reason=driving.missing() or "installed")
def test_the_inspector_lists_and_calls_the_tool():
    with running_daemon("--idle-exit-s", "600") as daemon:
        assert errands.run(daemon, print) == []


@pytest.mark.parametrize("value", [None, {}, {"tools": []}, {"tools": [{"name": "other"}]}])
def test_a_list_without_the_tool_is_seen(value):
    assert not errands._is_listed(driving.Answer(0, value, ""))
