"""The numbered rules of the wire and the vectors that stand for them.

Owns reading ``rules.json``, ``bases.json`` and ``vectors/*.json`` and what a well-formed vector is. Does not own
running one (``codec_runs``, ``broker_runs``, ``client_runs``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.conformance.payloads import expand, payload_of, with_member

HERE = Path(__file__).parent

# What a vector may be; the module that runs it.
KINDS = ("member", "payload", "answer", "conversation", "client", "stream")


@dataclass(frozen=True)
class Rule:
    """One numbered rule: its id starts with the section it stands in."""

    id: str
    section: str
    rule: str


@dataclass(frozen=True)
class Vector:
    """One vector; ``body`` is its JSON object, ``rules`` the ids of what it shows."""

    file: str
    name: str
    kind: str
    rules: tuple[str, ...]
    body: dict[str, Any]

    @property
    def label(self) -> str:
        return f"{self.file}: {self.name}"


@dataclass(frozen=True)
class Case:
    """One frame and its verdict, out of a vector's table. ``refused_as`` is the message id of a send's refusal."""

    vector: Vector
    number: int
    payload: bytes
    type: str
    said_by: str
    is_accepted: bool
    is_checked_by_broker: bool
    message_id: str
    refused_as: str

    @property
    def label(self) -> str:
        shown = self.payload[:160].decode("utf-8", "replace")
        return f"{self.vector.label} [{self.number}] {'accepts' if self.is_accepted else 'refuses'} {shown}"


@cache
def rules() -> dict[str, Rule]:
    return {entry["id"]: Rule(**entry) for entry in _read("rules.json")}


@cache
def vectors() -> tuple[Vector, ...]:
    files = sorted((HERE / "vectors").glob("*.json"))
    return tuple(_vector(file.stem, body) for file in files for body in json.loads(file.read_text("utf-8")))


def of_kind(*kinds: str) -> tuple[Vector, ...]:
    return tuple(vector for vector in vectors() if vector.kind in kinds)


def cases(vector: Vector) -> list[Case]:
    """The frames of a ``member`` or ``payload`` vector, numbered through."""
    tables = [(True, vector.body["accepts"]), (False, vector.body["refuses"])]
    if vector.kind == "payload":
        frames = [(is_accepted, {"$payload": pieces}, "native") for is_accepted, table in tables for pieces in table]
    else:
        base = _read("bases.json")[vector.body["frame"]]
        frames = [
            (is_accepted, with_member(base["frame"], path, value), base["by"])
            for path in vector.body["members"]
            for is_accepted, table in tables
            for value in table
        ]
    return [_case(vector, number, *entry) for number, entry in enumerate(frames)]


def _case(vector: Vector, number: int, is_accepted: bool, frame: dict[str, Any], said_by: str) -> Case:
    message_id = f"case-{number}"
    payload = payload_of(frame).replace(b'"<id>"', b'"%s"' % message_id.encode())
    if vector.kind == "payload":
        # A payload that is no JSON ends the connection, whatever it would have been.
        kind = "presence" if is_accepted and b'"presence"' in payload[:40] else "list"
    else:
        kind = frame.get("type", "")
        message_id = _own_message_id(frame) or message_id
    refused_as = message_id if vector.body.get("refused_as") == "<id>" else "unknown"
    is_checked_by_broker = vector.body.get("checked_by") == "broker"
    return Case(vector, number, payload, kind, said_by, is_accepted, is_checked_by_broker, message_id, refused_as)


def _own_message_id(frame: dict[str, Any]) -> str:
    """The id that the table itself gave the message."""
    message = frame.get("message")
    own = expand(message["id"]) if isinstance(message, dict) and "id" in message else "<id>"
    return own if isinstance(own, str) and own != "<id>" else ""


def _vector(file: str, body: dict[str, Any]) -> Vector:
    vector = Vector(file, body["name"], body["kind"], tuple(body["rules"]), body)
    unknown = [rule for rule in vector.rules if rule not in rules()]
    assert not unknown, f"{vector.label} names unknown rules: {unknown}"
    assert vector.kind in KINDS, f"{vector.label} is of unknown kind {vector.kind}"
    return vector


@cache
def _read(name: str) -> Any:
    return json.loads((HERE / name).read_text("utf-8"))
