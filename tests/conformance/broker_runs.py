"""Vectors on a broker: tables of single frames, and conversations of several connections.

Owns the meaning of a conversation's steps and of a frame's verdict as a client sees it. Does not own the broker they
run against (``targets``, ``live_target``).

A step is an object: ``says`` (connection -> frames, one write each connection), ``dribbles`` (one byte a write),
``joins``, ``connects``, ``hangs_up``, ``after`` (seconds), ``holds``/``reads``/``resets`` (kernels, scripted targets
only), ``happens``. Then ``expect`` gives exactly what every connection receives, in order (who is not named receives
nothing), ``closed`` which connections the broker has ended by now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from libintercom.wire.frames import decode_json, frame
from tests.conformance.catalogue import Case, Vector, cases
from tests.conformance.notation import received, registration, said
from tests.conformance.payloads import bytes_of, expand
from tests.support.matching import explain_mismatch

if TYPE_CHECKING:
    from tests.conformance.targets import Target

# Beyond the time that passes, how long a live broker may take to do what is due.
_GRACE_S = 5.0


class Run:
    """One conversation on one target."""

    def __init__(self, target: Target, vector: Vector) -> None:
        self.target, self.vector = target, vector
        self.kept: dict[str, Any] = {}
        self.conns: list[str] = []
        self.closed: set[str] = set()

    def play(self) -> None:
        for conn, spec in self.vector.body.get("given", {}).items():
            self._connect(conn)
            self._join(conn, spec)
        for number in range(self.vector.body.get("crowd", 0)):
            # Many sessions with rows as large as they may be; nobody looks at what they receive.
            self.target.connect(f"crowd-{number}")
            session = {"name": f"crowd {number:05}", "cwd": "c" * 1024}
            self.target.write(f"crowd-{number}", bytes_of(registration("crowd", {"session": session, "id": None})))
        for number, step in enumerate(self.vector.body["steps"]):
            self._step(f"{self.vector.label} ({self.target.name}), step {number}", step)

    def _connect(self, conn: str) -> None:
        self.target.connect(conn)
        self.conns.append(conn)

    def _join(self, conn: str, spec: dict[str, Any]) -> None:
        self.target.write(conn, bytes_of(registration(conn, spec)))
        self.target.settle({conn: 1}, set(), _GRACE_S)
        first = self.target.take(conn)
        assert len(first) == 1, f"{self.vector.label} ({self.target.name}): {conn} received {first} for its register"
        registered = decode_json(first[0])
        assert registered["type"] == "registered", f"{self.vector.label}: {conn} received {registered}"
        self.kept[conn] = registered["sessionId"]

    def _step(self, label: str, step: dict[str, Any]) -> None:
        for conn in step.get("connects", []):
            self._connect(conn)
        for conn, spec in step.get("joins", {}).items():
            if conn not in self.conns:
                self._connect(conn)
            self._join(conn, spec)
        self._act(step)
        expected = {conn: list(map(received, frames)) for conn, frames in expand(step.get("expect", {})).items()}
        wanted = {conn: len(frames) for conn, frames in expected.items()}
        closing = set(step.get("closed", [])) - self.closed
        self.target.settle(wanted, closing, step.get("after", 0.0) + _GRACE_S)
        for conn in self.conns:
            self._compare(label, conn, expected.get(conn, []), step.get("ignores", []))
        self.closed |= set(step.get("closed", []))
        ended = {conn for conn in self.conns if self.target.is_closed(conn)}
        assert ended == self.closed, f"{label}: closed are {sorted(ended)}, expected {sorted(self.closed)}"

    def _act(self, step: dict[str, Any]) -> None:
        scripted = ("holds", "reads", "resets", "happens")
        if any(name in step for name in scripted):
            self._script(step)
        for conn, frames in step.get("says", {}).items():
            times = step.get("times", 1)
            named = [self._with_names(words) for words in frames]
            self.target.write(conn, b"".join(bytes_of(said(words, conn)) for words in named) * times)
        for conn, words in step.get("dribbles", {}).items():
            for byte in bytes_of(said(words, conn)):
                self.target.write(conn, bytes([byte]))
        for conn in step.get("hangs_up", []):
            self.conns.remove(conn)
            self.target.hang_up(conn)
        if "after" in step:
            self.target.after(step["after"])

    def _with_names(self, words: Any) -> Any:
        """What is said, with ``<NAME>`` replaced by what was kept under that name."""
        if isinstance(words, dict):
            return {name: self._with_names(value) for name, value in words.items()}
        if isinstance(words, str) and words[:1] == "<" and words[1:-1] in self.kept:
            return self.kept[words[1:-1]]
        return words

    def _script(self, step: dict[str, Any]) -> None:
        target: Any = self.target
        assert target.is_scripted, f"{self.vector.label} scripts a kernel and cannot run live"
        for conn, room_bytes in step.get("holds", {}).items():
            target.holds(conn, room_bytes)
        for conn in step.get("reads", []):
            target.reads(conn)
        for conn in step.get("resets", []):
            target.resets(conn)
        for name in step.get("happens", []):
            target.happens(name)

    def _compare(self, label: str, conn: str, patterns: list[Any], ignores: list[str]) -> None:
        arrived = self.target.take(conn)
        if conn in ignores:
            return
        shown = [payload[:300].decode() for payload in arrived[:8]]
        assert len(arrived) == len(patterns), f"{label}: {conn} received {len(arrived)} frames: {shown}"
        for pattern, payload in zip(patterns, arrived, strict=True):
            is_text = isinstance(pattern, dict) and "$text" in pattern
            value = payload.decode() if is_text else decode_json(payload)
            wrong = explain_mismatch(pattern["$text"] if is_text else pattern, value, self.kept, conn)
            assert not wrong, f"{label}: {wrong}"


def play(target: Target, vector: Vector) -> int:
    """Run one vector on one target; returns how many frames or steps were judged."""
    try:
        if vector.kind == "conversation":
            Run(target, vector).play()
            return len(vector.body["steps"])
        table = cases(vector)
        _play_cases(target, vector, table)
        return len(table)
    finally:
        target.close()


def _play_cases(target: Target, vector: Vector, table: list[Case]) -> None:
    target.connect("peer")
    target.write("peer", bytes_of(registration("peer", {})))
    target.settle({"peer": 1}, set(), _GRACE_S)
    target.take("peer")
    for case in table:
        _play_case(target, case, f"{case.label} ({target.name})")


def _play_case(target: Target, case: Case, label: str) -> None:
    conn = "x"
    target.connect(conn)
    if case.said_by != "unregistered":
        target.write(conn, bytes_of(registration(conn, {"as": case.said_by})))
        target.settle({conn: 1}, set(), _GRACE_S)
        target.take(conn)
    target.write(conn, frame(case.payload))
    target.settle({}, set(), 0.0)
    answers = [decode_json(payload) for payload in target.take(conn)]
    is_open = not target.is_closed(conn)
    delivered = [decode_json(payload) for payload in target.take("peer")]
    wrong = _explain_verdict(case, answers, delivered, is_open=is_open)
    assert not wrong, f"{label}: {wrong}"
    if is_open or not target.is_scripted:
        target.hang_up(conn)
    target.settle({}, set(), 0.0)
    target.take("peer")


# What the answer to an accepted frame is; types that are not here have none.
_ANSWERS = {
    "register": ("registered",),
    "send": ("delivered", "delivery_queued"),
    "list": ("sessions",),
    "health": ("health_ok",),
    "stats": ("stats_result",),
    "dead_letters": ("dead_letters_result",),
    "read": ("read_result",),
    "park": ("park_failed",),
    "unpark": ("park_failed",),
    "fetch_reply": ("fetched_reply",),
    "cancel_message": ("delivered", "delivery_failed"),
}


def _explain_verdict(case: Case, answers: list[Any], delivered: list[Any], *, is_open: bool) -> str:
    found = f"open: {is_open}, answers: {str(answers)[:400]}, peer: {str(delivered)[:200]}"
    types = [answer["type"] for answer in answers]
    messages = [frame for frame in delivered if frame["type"] == "message"]
    if case.is_accepted:
        wanted = _ANSWERS.get(case.type)
        is_right = is_open and (len(types) == 1 and types[0] in wanted if wanted else not types)
        if case.type == "send" and is_right:
            is_right = answers[0]["messageId"] == case.message_id
            # What is staged arrives when its time is over.
            is_right = is_right and len(messages) == (types[0] == "delivered")
        return "" if is_right else f"not accepted; {found}"
    if messages:
        return f"a refused message arrived; {found}"
    if case.type == "send" and is_open:
        refusal = {"type": "delivery_failed", "messageId": case.refused_as, "code": "invalid_message", "...": True}
        return explain_mismatch([refusal], answers, {}, "x")
    return "" if not is_open and not types else f"not refused; {found}"
