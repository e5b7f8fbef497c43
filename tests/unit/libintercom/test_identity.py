"""Who a session is: ids, names, the strictness of lineage, a child's environment, the project."""

from __future__ import annotations

import hashlib
import re
import sys
from typing import TYPE_CHECKING

import pytest

from libintercom import identity, projects
from libintercom.errors import InvalidConfiguration, InvalidLineage
from libintercom.identity import (
    Lineage,
    child_environment,
    find_lineage,
    find_name,
    find_native_id,
    make_uuid,
    peer_id,
    project_id,
    sha256_hex,
    unnamed_alias,
)

if TYPE_CHECKING:
    from pathlib import Path

ROOT, PARENT = "PI_INTERCOM_ROOT_SESSION_ID", "PI_INTERCOM_PARENT_SESSION_ID"
UUID4 = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@pytest.mark.parametrize("native_id", ["a", "session-0192f0c1", "字🙂", "x" * 500])
def test_a_peer_id_is_a_digest_of_the_native_id(native_id: str) -> None:
    assert peer_id(native_id) == "pi-" + hashlib.sha256(native_id.encode()).hexdigest()[:32]


def test_a_known_peer_id() -> None:
    assert peer_id("abc") == "pi-ba7816bf8f01cfea414140de5dae2223"


def test_a_lone_surrogate_is_digested_as_javascript_does() -> None:
    assert peer_id("a\ud83d") == peer_id("a\ufffd")


@pytest.mark.parametrize(
    ("native_id", "alias"),
    [
        ("0192f0c1-77aa", "subagent-chat-0192f0c1"),
        ("session-0192f0c1-77aa", "subagent-chat-0192f0c1"),
        ("session-session-1", "subagent-chat-session-"),
        ("ab", "subagent-chat-ab"),
    ],
)
def test_unnamed_sessions(native_id: str, alias: str) -> None:
    assert unnamed_alias(native_id) == alias


def test_both_unset_is_a_main_and_its_own_root() -> None:
    found = find_lineage("me", {})
    assert (found, found.is_child) == (Lineage(root="me"), False)


def test_both_equal_is_a_child() -> None:
    found = find_lineage("me", {ROOT: "main 1", PARENT: "main 1"})
    assert (found.root, found.parent, found.is_child) == ("main 1", "main 1", True)


# White space of Python, of JavaScript, and of both.
PADDING = [" ", "\t", "\n", "\u00a0", "\u3000", "\ufeff", "\x1c", "\u2028", "\u0085"]


@pytest.mark.parametrize(
    "environ",
    [
        {ROOT: "a"},
        {PARENT: "a"},
        {ROOT: "", PARENT: ""},
        {ROOT: "a", PARENT: ""},
        {ROOT: "", PARENT: "a"},
        {ROOT: "a", PARENT: "b"},
        {ROOT: "a", PARENT: "A"},
        {ROOT: "a", PARENT: "a "},
        {ROOT: " a", PARENT: "a"},
        *({ROOT: f"a{pad}", PARENT: f"a{pad}"} for pad in PADDING),
        *({ROOT: f"{pad}a", PARENT: f"{pad}a"} for pad in PADDING),
        *({ROOT: pad, PARENT: pad} for pad in PADDING),
        {ROOT: "a\x1bb", PARENT: "a\x1bb"},
        {ROOT: "a" * 2000, PARENT: "a" * 2000},
    ],
)
def test_any_other_combination_stops_the_session(environ: dict[str, str]) -> None:
    with pytest.raises(InvalidLineage) as refused:
        find_lineage("me", environ)
    assert refused.value.exit_status == 2
    assert str(refused.value).isprintable()


def test_the_reason_names_the_variable() -> None:
    with pytest.raises(InvalidLineage, match=f"{PARENT} is missing"):
        find_lineage("me", {ROOT: "a"})
    with pytest.raises(InvalidLineage, match=f"{ROOT} is padded"):
        find_lineage("me", {ROOT: " a", PARENT: " a"})
    with pytest.raises(InvalidLineage, match="differ"):
        find_lineage("me", {ROOT: "a", PARENT: "b"})


def test_lineage_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROOT, "main")
    monkeypatch.setenv(PARENT, "main")
    assert find_lineage("me").is_child


def test_a_childs_environment_makes_a_child_of_it() -> None:
    environ = child_environment("main 字")
    assert environ == {ROOT: "main 字", PARENT: "main 字"}
    assert find_lineage("child", environ) == Lineage(root="main 字", parent="main 字")


@pytest.mark.parametrize("native_id", ["", " ", " a", "a\n", "\ufeffa"])
def test_an_id_that_a_child_could_not_be_told_is_refused(native_id: str) -> None:
    with pytest.raises(InvalidLineage):
        child_environment(native_id)


def test_a_native_id_by_rank() -> None:
    environ = {"INTERCOM_NATIVE_SESSION_ID": "from-environment"}
    assert find_native_id("from-option", environ) == "from-option"
    assert find_native_id(None, environ) == "from-environment"
    fresh = find_native_id(None, {})
    assert UUID4.fullmatch(fresh)
    assert fresh != find_native_id(None, {})


@pytest.mark.parametrize("value", ["", " ", " a", "a ", "a\x00b", "x" * 1025])
def test_a_bad_native_id_is_never_replaced(value: str) -> None:
    with pytest.raises(InvalidConfiguration, match="--session-id"):
        find_native_id(value, {})
    with pytest.raises(InvalidConfiguration, match="INTERCOM_NATIVE_SESSION_ID"):
        find_native_id(None, {"INTERCOM_NATIVE_SESSION_ID": value})


@pytest.mark.parametrize(
    ("environ", "name"), [({}, None), ({"": ""}, None), ("", None), ("  ", None), (" rev iew ", "rev iew"), ("a", "a")]
)
def test_the_name_from_the_environment(environ: object, name: str | None) -> None:
    given = environ if isinstance(environ, dict) else {"PI_SUBAGENT_INTERCOM_SESSION_NAME": str(environ)}
    assert find_name(given) == name


def test_a_name_with_control_characters_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="PI_SUBAGENT_INTERCOM_SESSION_NAME"):
        find_name({"PI_SUBAGENT_INTERCOM_SESSION_NAME": "a\x1bb"})


def test_uuids_are_random_and_of_version_4() -> None:
    made = {make_uuid() for _ in range(500)}
    assert len(made) == 500
    assert all(UUID4.fullmatch(text) for text in made)


def test_every_bit_of_a_uuid_is_random_but_the_prescribed_six(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity.os, "urandom", lambda size: b"\xff" * size)
    assert make_uuid() == "ffffffff-ffff-4fff-bfff-ffffffffffff"
    monkeypatch.setattr(identity.os, "urandom", bytes)
    assert make_uuid() == "00000000-0000-4000-8000-000000000000"


@pytest.mark.parametrize("missing", [(), ("_sha2",), ("_sha256",), ("_sha2", "_sha256")])
def test_the_digest_is_the_same_from_every_module(monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...]) -> None:
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    assert sha256_hex(b"abc") == hashlib.sha256(b"abc").hexdigest()


def test_a_project_is_its_common_directory_or_the_real_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setattr(projects, "find_common_dir", lambda _cwd: "")
    plain = hashlib.sha256(f"cwd:{tmp_path}/real".encode()).hexdigest()
    assert project_id(f"{tmp_path}/link") == project_id(f"{tmp_path}/real") == plain
    monkeypatch.setattr(projects, "find_common_dir", lambda _cwd: "/r/.git")
    assert project_id(f"{tmp_path}/link") == hashlib.sha256(b"git:/r/.git").hexdigest()
