"""`intercomctl list` and `status` on a real broker: who is shown to whom, and the JSON that others rely on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from libintercom.identity import NATIVE_ID_VARIABLE, PARENT_VARIABLE, ROOT_VARIABLE, child_environment, peer_id

ROOT = "ann-native-id"
ROW_MEMBERS = {
    "id",
    "name",
    "target",
    "cwd",
    "model",
    "status",
    "state",
    "acceptsAsks",
    "pendingAsks",
    "lastSeenMs",
    "lastIntercomActivityMs",
    "projectId",
}


@pytest.fixture
def team(ctl):
    """Two mains, and two children of the first."""
    child = ctl.having(**child_environment(ROOT))
    with (
        ctl.joined("ann", "--session-id", ROOT) as ann,
        ctl.joined("bob") as bob,
        child.joined("scout") as scout,
        child.joined("smith") as smith,
    ):
        smith.ask_and_hear("ok", action="presence", acceptsAsks=False, status="thinking")
        yield {"ann": ann, "bob": bob, "scout": scout, "smith": smith}


def names(rows):
    return [row["name"] for row in rows]


def test_an_empty_house_says_so(ctl):
    assert ctl.run("list", "--json").json == {
        "version": 1,
        "self": None,
        "mains": [],
        "mainsTotal": 0,
        "omitted": 0,
        "children": None,
    }
    ended = ctl.run("list")
    assert (ended.status, ended.err) == (0, "")
    assert "**Main sessions (0):** no other one is connected." in ended.out


def test_outside_of_any_session_the_mains_are_shown(ctl, team):
    shown = ctl.run("list", "--json").json
    assert set(shown) == {"version", "self", "mains", "mainsTotal", "omitted", "children"}
    assert shown["self"] is None
    assert shown["children"] is None
    assert names(shown["mains"]) == ["ann", "bob"]
    assert shown["mainsTotal"] == 2
    assert shown["omitted"] == 0


def test_a_row_has_the_members_that_scripts_rely_on(ctl, team):
    (row,) = ctl.run("list", "--to", "ann", "--json").json["mains"]
    assert set(row) == ROW_MEMBERS
    assert row["id"] == team["ann"].session_id == peer_id(ROOT)
    assert row["target"] == row["id"][:8]
    assert (row["cwd"], row["status"], row["state"]) == ("/", "idle", "idle")
    assert (row["acceptsAsks"], row["pendingAsks"], row["lastIntercomActivityMs"]) == (True, 0, None)
    assert row["lastSeenMs"] > 1_600_000_000_000


def test_the_text_has_both_blocks(ctl, team):
    shown = ctl.run("list", "--session-id", ROOT).out
    assert "**Current session:**\n• ann (" in shown
    assert "**Main sessions (1):**\n• bob (" in shown
    assert "**Child sessions (2):** 1 idle, 1 busy. Their rows: intercomctl list --children" in shown
    assert shown.count("**Delivery:**") == 1


def test_a_mains_shell_shows_it_as_itself_and_counts_its_children(ctl, team):
    inside = ctl.having(**{NATIVE_ID_VARIABLE: ROOT})
    for view in (ctl.run("list", "--session-id", ROOT, "--json"), inside.run("list", "--json")):
        shown = view.json
        assert shown["self"]["name"] == "ann"
        assert names(shown["mains"]) == ["bob"]
        assert shown["children"] == {"total": 2, "matching": 2, "byState": {"idle": 1, "busy": 1, "unknown": 0}}


def test_children_prints_their_rows(ctl, team):
    shown = ctl.run("list", "--session-id", ROOT, "--children", "--json").json["children"]
    assert names(shown["rows"]) == ["scout", "smith"]
    assert set(shown["rows"][0]) == ROW_MEMBERS
    text = ctl.run("list", "--session-id", ROOT, "--children").out
    assert "**Child sessions (2):**\n• scout (" in text


def test_a_text_keeps_matching_names_and_ids_in_both_blocks(ctl, team):
    shown = ctl.run("list", "--session-id", ROOT, "--to", "SC", "--json").json
    assert (shown["mains"], shown["mainsTotal"]) == ([], 1)
    assert (shown["children"]["total"], shown["children"]["matching"]) == (2, 1)
    assert names(shown["children"]["rows"]) == ["scout"]
    text = ctl.run("list", "--session-id", ROOT, "--to", "SC").out
    assert '**Main sessions (0 of 1 match "SC"):**' in text
    assert '**Child sessions (1 of 2 match "SC"):**\n• scout (' in text
    by_id = team["bob"].session_id[3:12]
    assert names(ctl.run("list", "--to", by_id, "--json").json["mains"]) == ["bob"]


def test_a_childs_shell_is_that_child(ctl, team):
    child = ctl.having(**child_environment(ROOT))
    shown = child.run("list", "--json").json
    assert names(shown["mains"]) == ["ann"]
    assert shown["children"]["total"] == 2
    assert "bob" not in child.run("list", "--children").out


def test_looking_leaves_no_trace(ctl, team):
    before = len(team["bob"].events)
    for words in (["list"], ["status"], ["metrics"]):
        assert ctl.run(*words).status == 0
    assert names(team["bob"].ask_and_hear("sessions", action="list")["sessions"]) == ["ann", "bob"]
    assert len(team["bob"].events) == before + 1


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({ROOT_VARIABLE: "a"}, "PI_INTERCOM_PARENT_SESSION_ID is missing"),
        ({PARENT_VARIABLE: "a"}, "PI_INTERCOM_ROOT_SESSION_ID is missing"),
        ({ROOT_VARIABLE: "a", PARENT_VARIABLE: "b"}, "differ"),
        ({ROOT_VARIABLE: " a", PARENT_VARIABLE: " a"}, "padded"),
        ({ROOT_VARIABLE: "", PARENT_VARIABLE: ""}, "empty"),
    ],
)
def test_a_lineage_that_is_none_is_refused(ctl, variables, words):
    ended = ctl.having(**variables).run("list")
    assert ended.status == 2
    assert not ended.out
    assert words in ended.err


@pytest.mark.parametrize("command", ["status", "metrics", "send bob x", "ask bob x", "join x", "join x --jsonl"])
def test_every_command_that_joins_refuses_such_a_lineage(ctl, command):
    ended = ctl.having(**{ROOT_VARIABLE: "a"}).run(*command.split())
    assert (ended.status, ended.out) == (2, "")
    assert "PI_INTERCOM_PARENT_SESSION_ID is missing" in ended.err


def test_a_refused_lineage_is_told_in_json_as_well(ctl):
    ended = ctl.having(**{ROOT_VARIABLE: "a"}).run("list", "--json")
    assert ended.status == ended.json["exitStatus"] == 2
    assert ended.json["error"] in ended.err


def test_the_project_scope_keeps_one_project(ctl, tmp_path):
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", project], check=True)
    with ctl.joined("elsewhere"):
        here = ctl.run("list", "--scope", "project", "--json", cwd=os.fspath(project / "sub")).json
        assert (here["mains"], here["mainsTotal"]) == ([], 1)
        root = ctl.run("list", "--scope", "project", "--json").json
        assert names(root["mains"]) == ["elsewhere"]
        text = ctl.run("list", "--scope", "project", cwd=os.fspath(project)).out
        assert "**Main sessions (0 of 1 in this project):**" in text


def test_a_directory_that_is_gone_or_unprintable_keeps_nobody_from_looking(ctl, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd {gone}; rmdir {gone}; exec intercomctl list --json"
    path = f"{os.path.dirname(sys.executable)}:{ctl.environment['PATH']}"
    ended = subprocess.run(
        ["sh", "-c", script], check=False, capture_output=True, env={**ctl.environment, "PATH": path}
    )
    assert ended.returncode == 0, ended.stderr
    hostile = os.fsencode(tmp_path) + b"/a\x1b[31m\n\xff"
    os.mkdir(hostile)
    assert ctl.run("list", "--json", cwd=hostile).status == 0


def test_status_says_which_broker_and_which_session(ctl, broker, team):
    shown = ctl.run("status", "--json").json
    assert shown["connected"] is True
    assert shown["sessionId"] is None
    assert shown["sessions"] == 2
    assert shown["broker"]["pid"] == broker.pid
    assert shown["broker"]["program"] == "intercomd"
    assert shown["socket"] == broker.socket_path
    assert names(shown["mains"]) == ["ann", "bob"]
    own = ctl.run("status", "--session-id", ROOT, "--json").json
    assert (own["sessionId"], own["sessions"], own["pendingAsks"]) == (team["ann"].session_id, 4, 0)


def test_status_counts_the_questions_that_wait(ctl, team):
    team["bob"].say({"action": "ask", "requestId": "q", "to": "ann", "text": "why?"})
    team["ann"].hear("message")
    team["ann"].ask_and_hear("pending", action="pending")
    text = ctl.run("status", "--session-id", ROOT).out
    assert f"**Session ID:** {team['ann'].session_id}" in text
    assert "**Pending inbound messages:** 1" in text
    assert f"pid {ctl.run('status', '--json').json['broker']['pid']}" in text
