"""Nothing that a peer or a broker says acts on a terminal: the corpus through every command that prints."""

from __future__ import annotations

import json
import threading

import pytest

from tests.support.ctl import Ctl, unsafe_characters
from tests.support.daemon import runtime_directory
from tests.support.raw_peer import RawPeer
from tests.support.scripted_broker import HELLO, ScriptedBroker

# What a label of a real broker may hold: order, tags, invisible ones, half a pair, markup of printing libraries.
LABEL = "a\u202eb\U000e0041c\ud83dd\u2028e\u200bf[red]g[/red]:warning:%s{0}h"
TEXT = f"{LABEL}\tnext\nline"
# What only a broker that breaks every rule sends: escape sequences, among them one that writes the clipboard.
RAW = f"{LABEL}\x1b[31mi\x1b]52;c;cm0=\x07j\x9b1mk\x7fl\x00"
COLUMNS = [0, 80, 160]
PIPE_AND_TERMINAL = [0, 80]


def run(ctl, *words, columns, typed=b""):
    """The command's whole output through pipes (0 columns) or at a terminal."""
    if columns:
        ended = ctl.run_at_terminal(*words, columns=columns, typed=typed)
        return ended.status, ended.out.replace("\r\n", "\n").replace("\r\x1b[K", "\n")
    ended = ctl.run(*words, stdin=typed)
    return ended.status, ended.out + ended.err


def assert_harmless(shown, *, is_json=False):
    assert not unsafe_characters(shown, allowed="\n" if is_json else "\n\t"), repr(shown)
    if is_json:
        assert shown.isascii()
    assert "[red]g[/red]:warning:%s{0}" in shown, repr(shown)


def test_every_hostile_character_would_be_seen():
    hostile = [one for one in RAW if not (one.isascii() and one.isprintable())]
    assert unsafe_characters(RAW) == hostile
    assert len(set(hostile)) == 10
    with pytest.raises(AssertionError):
        assert_harmless(f"[red]g[/red]:warning:%s{{0}} {LABEL}")


class Hostile:
    """A session of a real broker whose every word is hostile; it answers asks with hostile text."""

    def __init__(self, path):
        self.peer = RawPeer(path)
        session = {"cwd": LABEL, "model": LABEL, "name": LABEL, "status": LABEL, "acceptsAsks": True, "pendingAsks": 0}
        answer = self.peer.join({"type": "register", "session": session, "requestedId": "hostile-0001", "ext": 1})
        self.session_id = answer["sessionId"]
        self._answering = threading.Thread(target=self._answer)
        self._answering.start()

    def _answer(self):
        """Answer every question, and every message by one of its own, until the connection ends."""
        while payload := self.peer.hear_payload():
            heard = json.loads(payload)
            if heard["type"] != "message":
                continue
            asked = heard["message"]
            reply = {"id": f"re-{asked['id']}", "timestamp": 1, "content": {"text": TEXT}, "replyTo": asked["id"]}
            question = {
                "id": f"q-{LABEL}-{asked['id']}",
                "timestamp": 1,
                "content": {"text": TEXT},
                "expectsReply": True,
            }
            self.peer.say(
                {"type": "send", "to": heard["from"]["id"], "message": reply},
                {"type": "send", "to": heard["from"]["id"], "message": {**question, "timeoutMs": 0}},
            )

    def close(self):
        self.peer.socket.shutdown(2)
        self._answering.join()
        self.peer.socket.close()


@pytest.fixture(scope="module")
def hostile(broker):
    session = Hostile(broker.socket_path)
    yield session
    session.close()


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("words", ["list", "list --to a", "status", "list --json", "status --json"])
def test_rows(ctl, hostile, words, columns):
    status, shown = run(ctl, *words.split(), columns=columns)
    assert status == 0
    assert_harmless(shown, is_json="--json" in words)
    if "--json" in words:
        row = json.loads(shown)["mains"][0]
        assert row["name"] == row["cwd"] == row["model"] == row["status"] == LABEL


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("is_json", [False, True])
def test_a_reply(ctl, hostile, columns, is_json):
    status, shown = run(ctl, "ask", "hostile-0001", "why?", *(["--json"] if is_json else []), columns=columns)
    assert status == 0
    if is_json:
        shown = shown.splitlines()[-1]
        assert json.loads(shown)["reply"]["text"] == TEXT
    assert_harmless(shown, is_json=is_json)


@pytest.mark.parametrize("columns", COLUMNS)
def test_words_of_the_command_line(ctl, hostile, columns):
    hostile_word = f"nobody-{LABEL}".replace("\ud83d", "")
    for words in (["send", hostile_word, "x"], ["ask", hostile_word, "x"], ["list", "--to", hostile_word]):
        _status, shown = run(ctl, *words, columns=columns)
        assert_harmless(shown)


@pytest.mark.parametrize("columns", COLUMNS)
def test_a_joined_person(ctl, hostile, columns):
    typed = b"/send hostile-0001 hello\n/ask hostile-0001 why?\n/list\n/pending\n/status\n"
    person = ctl.run_at_terminal("join", "ann", columns=columns, typed=typed + b"\x04") if columns else None
    ended = person or ctl.run("join", "ann", stdin=typed)
    shown = (ended.out + ended.err).replace("\r\n", "\n")
    assert ended.status == 0, shown
    # A terminal shows Ctrl-D as ^D and takes it back.
    assert_harmless(shown.replace("^D\b\b", ""))


def test_a_joined_script(ctl, hostile):
    with ctl.joined("ann") as ann:
        ann.ask_and_hear("sent", action="send", to="hostile-0001", text="x")
        assert ann.hear("message")["from"]["name"] == LABEL
        pending = ann.ask_and_hear("pending", action="pending")
    assert pending["asks"][0]["text"] == TEXT


# ------------------------------------------------------------------ a broker that breaks every rule

CANDIDATE = {"id": RAW, "target": RAW, "name": RAW, "cwd": RAW}
FAILED = {"type": "delivery_failed", "reason": RAW, "code": "not_found", "nearest": [CANDIDATE], "rule": RAW}


def lying(answers):
    """A broker's end whose every word is hostile; ``answers`` maps a request's type to the frames it gets."""

    def script(peer):
        heard = peer.hear()
        registered = {
            "type": "registered",
            "sessionId": RAW,
            "ext": 1,
            "broker": {**HELLO, "program": RAW, "version": RAW},
        }
        observer = {"observer": 1} if heard.get("observer") else {}
        peer.say({**registered, **observer})
        while heard := peer.hear():
            for answer in answers.get(heard["type"], ()):
                marks = {"requestId": heard.get("requestId"), "messageId": heard.get("message", {}).get("id")}
                peer.say({**{name: mark for name, mark in marks.items() if mark}, **answer})

    return script


@pytest.fixture
def liar():
    """Runs a command against such a broker."""

    def run_against(answers, *words, columns, typed=b""):
        with runtime_directory() as directory:
            scripted = ScriptedBroker(f"{directory}/broker.sock", [lying(answers)])
            try:
                return run(Ctl(directory), *words, columns=columns, typed=typed)
            finally:
                scripted.close()

    return run_against


EMPTY = {"type": "sessions", "sessions": []}
LIES = [
    ("status", {"list": [EMPTY]}, 0),
    ("broker start", {}, 0),
    ("broker stop", {}, 1),
    ("list", {"list": [{"type": "error", "error": RAW}, {"type": "nonsense"}]}, 4),
    ("metrics", {"stats": [{"type": "stats_result", "counters": {RAW: 1, "k": {RAW: 2}}, "gauges": {RAW: 3}}]}, 0),
    ("send bob x", {"send": [FAILED]}, 1),
    ("send bob x", {"send": [{**FAILED, "code": RAW, "outcomeKnown": False}]}, 3),
    ("send bob x", {"send": [{**FAILED, "code": "ambiguous", "candidates": [CANDIDATE]}]}, 1),
    ("send bob x", {"send": [{"type": "delivery_queued", "reason": RAW}]}, 0),
    ("ask bob x", {"list": [EMPTY], "send": [FAILED]}, 1),
]


@pytest.mark.parametrize("columns", PIPE_AND_TERMINAL)
@pytest.mark.parametrize(("words", "answers", "status"), LIES, ids=[f"{n}-{lie[0]}" for n, lie in enumerate(LIES)])
def test_a_lying_broker(liar, words, answers, status, columns):
    ended, shown = liar(answers, *words.split(), columns=columns)
    assert ended == status, shown
    assert not unsafe_characters(shown), repr(shown)


@pytest.mark.parametrize("words", ["status", "broker start", "metrics", "send bob x", "ask bob x"])
def test_a_lying_broker_in_json(liar, words):
    answers = {name: frames for known, lies, _status in LIES if known == words for name, frames in lies.items()}
    _status, shown = liar(answers, *words.split(), "--json", columns=80)
    line = shown.splitlines()[-1]
    assert line.isascii()
    assert not unsafe_characters(line, allowed="")
    assert json.loads(line)["version"] == 1


@pytest.mark.parametrize("is_jsonl", [False, True])
def test_a_lying_broker_of_a_joined_session(liar, is_jsonl):
    lies = [
        {"type": "session_left", "sessionId": RAW},
        {"type": "ask_retired", "messageId": RAW, "askerId": RAW, "reason": RAW},
        {"type": "dead_letter", "messageId": RAW, "recipientId": RAW, "reason": RAW, "atMs": 1},
        EMPTY,
        {"type": "error", "error": RAW},
    ]
    typed = b'{"action":"list"}\n{"action":"send","to":"b","text":"x"}\n' if is_jsonl else b"/list\n/send b x\n"
    answers = {"list": lies, "send": [FAILED]}
    words = ["join", "ann", *(["--jsonl"] if is_jsonl else [])]
    _status, shown = liar(answers, *words, columns=0, typed=typed)
    assert not unsafe_characters(shown), repr(shown)
    assert "i" in shown
