"""A stand-in for the Node command of a device: it speaks the seeds' JSON on standard input and output, no more.

Owns what such a command says: no ``outcome``, no ``messageId``, no notice of its input's end. Run as a program: its
argument is ``lists`` for an old one that lists only, else it knows all three commands.
"""

from __future__ import annotations

import json
import sys
import time

SESSION = {"id": "pi-0123456789abcdef0123456789abcdef", "name": "api-fix", "cwd": "/work/api", "model": "model-b"}


def main(words: list[str]) -> int:
    request = json.loads(sys.stdin.read())
    command = request["command"]
    if command not in (("list",) if "lists" in words else ("list", "send", "ask")):
        return _say({"error": f'Unsupported command "{command}".'}) or 1
    if command == "list":
        return _say({"now": time.time() * 1000, "sessions": [{**SESSION, "status": "idle", "acceptsAsks": True}]})
    message_id = request["message"]["messageId"]
    if request["to"] != SESSION["name"]:
        return _say({"error": f'Message to "{request["to"]}@{request["device"]}" was not delivered: not found.'}) or 1
    receipt = {"id": message_id, "accepted": True, "delivered": True}
    _say({"receipt": receipt})
    if command == "ask":
        content = {"text": f"answer to {request['message']['text']}"}
        reply = {"id": "reply-1", "timestamp": 1794350611000, "replyTo": message_id, "content": content}
        _say({"receipt": receipt, "reply": reply})
    return 0


def _say(members: dict[str, object]) -> int:
    sys.stdout.write(json.dumps({"version": 1, **members}) + "\n")
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
