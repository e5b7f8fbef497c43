"""A broker's end that does what a test tells it, on a real socket: for clients, their waiting and their bytes.

Owns one listening socket and a thread that serves its connections one after the other. Does not own a broker's rules:
each script says every answer itself.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any

from libintercom.wire.frames import FrameReader, decode_json, encode_json, frame
from tests.support.daemon import runtime_directory
from tests.support.desk import row
from tests.support.waiting import DEADLINE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Script = Callable[["Peer"], None]

Object = dict[str, Any]
HELLO: Object = {"program": "scripted", "version": "0", "pid": 1, "incarnation": "i"}


class Peer:
    """One accepted connection. Every call has a deadline, so a script never outlives its test."""

    def __init__(self, connection: socket.socket, said: list[Object]) -> None:
        self.connection = connection
        self._reader, self._waiting, self._said = FrameReader(), list[Object](), said
        connection.settimeout(DEADLINE_S)

    def hear(self) -> Object:
        """The next frame of the client; ``{}`` when it closed, with unread bytes (a reset) or without."""
        while not self._waiting:
            try:
                received = self.connection.recv(65_536)
            except ConnectionResetError:
                received = b""
            if not received:
                return {}
            self._waiting += [decode_json(payload) for payload in self._reader.feed(received)]
        heard = self._waiting.pop(0)
        self._said.append(heard)
        return heard

    def say(self, *frames: Object) -> None:
        self.connection.sendall(b"".join(frame(encode_json(one)) for one in frames))

    def register(self, *, ext: bool = True, session_id: str = "pi-client01") -> Object:
        """Take the registration and answer it as a broker of ours, or as an old one."""
        heard = self.hear()
        assert heard["type"] == "register"
        self.say({"type": "registered", "sessionId": session_id, **({"ext": 1, "broker": HELLO} if ext else {})})
        return heard

    def reset(self) -> None:
        """Close with unread bytes behind, which the other end sees as a reset where the system does so."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


class ScriptedBroker:
    """Scripts, one for each connection in turn; what the clients said and what went wrong in a script."""

    def __init__(self, path: str, scripts: list[Script]) -> None:
        self.path = path
        self.said: list[Object] = []
        self.failures: list[BaseException] = []
        self.served = 0
        self._scripts = scripts
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listening.bind(path)
        self._listening.listen(8)
        self._listening.settimeout(DEADLINE_S)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait until every script ended well."""
        wait_until(lambda: not self._thread.is_alive(), "the broker's scripts to end")
        assert not self.failures, self.failures

    def close(self) -> None:
        self._listening.close()
        self._thread.join(DEADLINE_S)

    def _serve(self) -> None:
        for script in self._scripts:
            try:
                connection, _address = self._listening.accept()
                self.served += 1
                with connection:
                    script(Peer(connection, self.said))
            except (OSError, AssertionError, KeyError) as error:
                self.failures.append(error)
                return


@contextlib.contextmanager
def scripted(*scripts: Script) -> Iterator[ScriptedBroker]:
    """A broker's end in a directory of its own."""
    with runtime_directory() as directory:
        broker = ScriptedBroker(f"{directory}/broker.sock", list(scripts))
        try:
            yield broker
        finally:
            broker.close()


def stay(peer: Peer) -> None:
    """Take everything until the client closes."""
    while peer.hear():
        pass


def answer_list(peer: Peer, heard: Object, *rows: Object) -> bool:
    """Answer a list with the client's own row and these; False when something else was said."""
    if heard.get("type") != "list":
        return False
    peer.say({"type": "sessions", "requestId": heard["requestId"], "sessions": [row("pi-client01", "me"), *rows]})
    return True
