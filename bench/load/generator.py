"""The generator where there is no C compiler: the same measurements, words and report as generator.c (see its head).

Slower than the C one, so its own share of a figure is larger; the report says which of the two measured.
"""

from __future__ import annotations

import array
import json
import os
import resource
import select
import socket
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The same as in generator.c, so that both play the same sessions.
_DEFAULTS = {"count": 1000, "warm": 100, "text": 512, "pairs": 1, "window": 64, "ms": 1000, "batch": 1000, "rate": 1000}
_WORDS = "the broker hands this text to one session and to nobody else "
_PATIENCE_S = 20.0
_READ_BYTES = 1024 * 1024
_LONGEST_NS = 2**32 - 1
_OUTCOMES = (b"delivered", b"delivery_queued")
_REFUSALS = (b"delivery_failed", b"error")
# The length before each payload.
_HEADER_BYTES = 4
# Where a frame tells its type: the first member of every broker seen so far.
_HEAD_BYTES = 64
# A streamed list says near one of its ends whether more follows.
_EDGE_BYTES = 128


def frame(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


class Broken(SystemExit):
    """The broker refused or fell silent: said on stderr, status 1."""

    def __init__(self, found: str) -> None:
        super().__init__(f"generator: {found}")


class Peer:
    """One registered session on a raw socket."""

    def __init__(self, path: str, role: str, name: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(_PATIENCE_S)
        self.socket.connect(path)
        self.buffer = bytearray()
        self.queued = 0
        session: dict[str, object] = {
            "cwd": f"/bench/{role}",
            "model": "bench",
            "name": name,
            "status": "idle",
            "acceptsAsks": True,
        }
        session |= {"pid": os.getpid(), "startedAt": 1700000000000, "lastActivity": 1700000000000}
        ids = {"requestedId": f"bench-{name}", "sessionId": f"bench-{name}"}
        said = {"type": "register", **ids, "session": session, "ext": 1}
        self.say(frame(json.dumps(said, separators=(",", ":")).encode()))
        self.id: str = json.loads(self.await_kind(b"registered"))["sessionId"]

    def say(self, frames: bytes) -> None:
        self.socket.sendall(frames)

    def fill(self) -> None:
        """Read once what is there; wait for it on a blocking socket."""
        try:
            received = self.socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except TimeoutError as error:
            raise Broken(f"no answer for {_PATIENCE_S:g} s") from error
        if not received:
            raise Broken("the broker closed a connection")
        self.buffer += received

    def frames(self) -> Iterator[tuple[bytes, bytearray]]:
        """Kind and payload of each whole frame that was read, taken off the buffer at the end."""
        start, end = 0, len(self.buffer)
        while end - start >= _HEADER_BYTES:
            behind = start + 4 + int.from_bytes(self.buffer[start : start + 4], "big")
            if behind > end:
                break
            kind = self._kind(start, behind)
            yield kind, self.buffer[start + 4 : behind]
            start = behind
        del self.buffer[:start]

    def await_kind(self, *kinds: bytes) -> bytearray:
        """Wait for a frame of one of the kinds; nothing may come behind it in the same read."""
        while True:
            found = [payload for kind, payload in self.frames() if kind in kinds]
            if found:
                return found[0]
            self.fill()

    def count_kinds(self, *kinds: bytes) -> int:
        return sum(kind in kinds for kind, _payload in self.frames())

    def _kind(self, start: int, behind: int) -> bytes:
        at = self.buffer.find(b'"type":"', start, start + _HEAD_BYTES) + 8
        kind = bytes(self.buffer[at : self.buffer.find(b'"', at, behind)])
        if kind in _REFUSALS:
            raise Broken(f"the broker refused: {bytes(self.buffer[start + 4 : behind][:300])!r}")
        self.queued += kind == b"delivery_queued"
        return kind


class Message:
    """A prebuilt ``send``; ``numbered`` fills in the ID's last digits."""

    def __init__(self, to: str, series: str, text_bytes: int, *, delivery: str = "", kind: str = "") -> None:
        self._text = (_WORDS * (text_bytes // len(_WORDS) + 1))[:text_bytes]
        extra = f'"delivery":"{delivery}",' if delivery else kind
        form = '{{"type":"send","to":"{}","message":{{"id":"00000000-0000-4000-{}-%012d","timestamp":1700000000000,'
        head = form.format(to, series) + extra
        tail = f'"content":{{"text":"{self._text}"}}}}}}'
        self._payload = (head + tail).encode()

    def numbered(self, *numbers: int) -> bytes:
        return frame(self._payload % numbers)


class Generator:
    """One measurement: ``given`` are its options, ``samples`` nanoseconds."""

    def __init__(self, words: list[str]) -> None:
        pairs = dict(word.split("=", 1) for word in words)
        self.texts = {name: pairs.pop(name, "") for name in ("path", "samples", "tag")}
        self.given = {**_DEFAULTS, **{name: int(value) for name, value in pairs.items()}}
        self.samples = array.array("I")
        self.peers: list[Peer] = []
        self.messages = self.elapsed_ns = self.all = 0

    def join(self, role: str, number: int = 0) -> Peer:
        peer = Peer(self.texts["path"], role, f"{role}-{self.texts['tag'] or 0}-{number}")
        self.peers.append(peer)
        return peer

    def turns(self) -> range:
        return range(-self.given["warm"], self.given["count"])

    def keep(self, turn: int, from_ns: int) -> None:
        spent = time.perf_counter_ns() - from_ns
        if turn >= 0:
            self.samples.append(min(spent, _LONGEST_NS))
            self.messages += 1

    def lanes(self) -> list[Lane]:
        return [Lane(self, index) for index in range(self.given["pairs"])]

    def ack(self) -> None:
        lanes = self.lanes()
        for turn in self.turns():
            number = turn + self.given["warm"]
            lane = lanes[number % len(lanes)]
            said = lane.message.numbered(number)
            from_ns = time.perf_counter_ns()
            lane.sender.say(said)
            lane.sender.await_kind(*_OUTCOMES)
            self.keep(turn, from_ns)
            lane.receiver.await_kind(b"message")

    def ask(self) -> None:
        answerer, asker = self.join("answerer"), self.join("asker")
        question = Message(answerer.id, "8000", self.given["text"], kind='"expectsReply":true,')
        replies_to = '"replyTo":"00000000-0000-4000-8000-%012d",'
        reply = Message(asker.id, "9000", self.given["text"], kind=replies_to)
        for turn in self.turns():
            number = turn + self.given["warm"]
            asked, replied = question.numbered(number), reply.numbered(number, number)
            from_ns = time.perf_counter_ns()
            asker.say(asked)
            answerer.await_kind(b"message")
            answerer.say(replied)
            asker.await_kind(b"message")
            self.keep(turn, from_ns)
            answerer.await_kind(*_OUTCOMES)

    def pace(self) -> None:
        lanes, total, sent = self.lanes(), self.given["warm"] + self.given["count"], 0
        poller, pause_s, due_s = watch(lanes), 1.0 / self.given["rate"], time.perf_counter()
        while self.all < total:
            left_s = _PATIENCE_S if sent == total else max(0.0, due_s - time.perf_counter())
            ready = dict(poller.poll(left_s))
            if not ready and sent == total:
                raise Broken(f"no answer for {_PATIENCE_S:g} s")
            for lane in lanes:
                self.hear_paced(lane, ready)
            while sent < total and time.perf_counter() >= due_s:
                lanes[sent % len(lanes)].send_paced(sent)
                sent, due_s = sent + 1, due_s + pause_s

    def hear_paced(self, lane: Lane, ready: dict[int, int]) -> None:
        if lane.sender.socket.fileno() in ready:
            lane.sender.fill()
            for _outcome in range(lane.sender.count_kinds(*_OUTCOMES)):
                self.keep(self.all - self.given["warm"], lane.sent_ns[lane.answered])
                lane.answered, self.all = lane.answered + 1, self.all + 1
        if lane.receiver.socket.fileno() in ready:
            lane.hear_receiver()

    def flow(self) -> None:
        lanes = self.lanes()
        poller, readers = watch(lanes), {lane.receiver.socket.fileno(): lane for lane in lanes}
        senders = {lane.sender.socket.fileno(): lane for lane in lanes}
        begin_s = time.perf_counter() + self.given["warm"] / 1000
        end_s, began_s, first, is_sending = begin_s + self.given["ms"] / 1000, 0.0, 0, True
        for lane in lanes:
            lane.sender.socket.setblocking(False)
            lane.top_up(poller)
        while is_sending or any(not lane.is_done for lane in lanes):
            ready = poller.poll(_PATIENCE_S)
            if not ready:
                raise Broken(f"nothing came for {_PATIENCE_S:g} s")
            for fd, _events in ready:
                if fd in readers:
                    readers[fd].hear_receiver()
                else:
                    senders[fd].hear_sender(poller, is_sending=is_sending)
            now_s, answered = time.perf_counter(), sum(lane.answered for lane in lanes)
            if not began_s and now_s >= begin_s:
                began_s, first = now_s, answered
            if is_sending and now_s >= end_s:
                is_sending, self.messages, self.elapsed_ns = False, answered - first, int((now_s - began_s) * 1e9)
        self.all = sum(lane.sent for lane in lanes)

    def bulk(self) -> None:
        receiver, sender = self.join("receiver"), self.join("sender")
        message = Message(receiver.id, "8000", self.given["text"], delivery="steer")
        for turn in self.turns():
            left = memoryview(message.numbered(turn + self.given["warm"]))
            from_ns, has_arrived = time.perf_counter_ns(), 0
            while not has_arrived:
                writers = [sender.socket] if left else []
                readable, writable, _ = select.select([receiver.socket], writers, [], _PATIENCE_S)
                if writable:
                    left = left[sender.socket.send(left, socket.MSG_DONTWAIT) :]
                if readable:
                    receiver.fill()
                    has_arrived = receiver.count_kinds(b"message")
            self.keep(turn, from_ns)
            sender.await_kind(*_OUTCOMES)

    def list(self) -> None:
        peer, asked = self.join("lister"), frame(b'{"type":"list","requestId":"r","stream":true}')
        for turn in self.turns():
            from_ns, is_whole = time.perf_counter_ns(), False
            peer.say(asked)
            while not is_whole:
                peer.fill()
                for kind, payload in peer.frames():
                    edges = payload[:_EDGE_BYTES] + payload[-_EDGE_BYTES:]
                    is_whole = kind == b"sessions" and b'"more":true' not in edges
            self.keep(turn, from_ns)

    def last(self) -> None:
        owner, reader, units = self.join("owner"), self.join("reader"), self.given["text"]
        asked = frame(f'{{"type":"read","requestId":"r","kind":"last","to":"{owner.id}","offset":0}}'.encode())
        page = {"entryId": "entry", "offset": 0, "text": "x" * units, "nextOffset": units, "total": 2 * units}
        tail = f'","kind":"last","page":{json.dumps(page, separators=(",", ":"))}}}'.encode()
        for turn in self.turns():
            from_ns = time.perf_counter_ns()
            reader.say(asked)
            token = bytes(owner.await_kind(b"read_request")).split(b'"token":"', 1)[1].split(b'"', 1)[0]
            owner.say(frame(b'{"type":"read_response","token":"' + token + tail))
            result = reader.await_kind(b"read_result")
            self.keep(turn, from_ns)
            if len(result) < units:
                raise Broken(f"no page came: {bytes(result[:300])!r}")

    def presence(self) -> None:
        receiver, sender = self.join("receiver"), self.join("sender")
        message = Message(receiver.id, "8000", self.given["text"], delivery="steer")
        form = '{"type":"presence","status":"%s","acceptsAsks":%s,"pendingAsks":%d}'
        states = [form % ("thinking", "false", 1), form % ("idle", "true", 0)]
        changes = [frame(state.encode()) for state in states]
        for turn in self.turns():
            said = message.numbered(turn + self.given["warm"])
            from_ns = time.perf_counter_ns()
            for index in range(self.given["batch"]):
                sender.say(changes[index & 1])
            sender.say(said)
            sender.await_kind(*_OUTCOMES)
            self.keep(turn, from_ns)
            receiver.await_kind(b"message")

    def report(self, began_ns: int) -> str:
        used = resource.getrusage(resource.RUSAGE_SELF)
        lifetime_ns = time.perf_counter_ns() - began_ns
        found = {"all": self.all or self.messages, "messages": self.messages, "lifetime_ns": lifetime_ns}
        found |= {"elapsed_ns": self.elapsed_ns or lifetime_ns, "cpu_ns": int((used.ru_utime + used.ru_stime) * 1e9)}
        return json.dumps({**found, "queued": sum(peer.queued for peer in self.peers)})


def watch(lanes: list[Lane]) -> select.epoll:
    """A poller that says when either end of a pair has something to read."""
    poller = select.epoll()
    for lane in lanes:
        poller.register(lane.receiver.socket, select.EPOLLIN)
        poller.register(lane.sender.socket, select.EPOLLIN)
    return poller


class Lane:
    """A sender and its receiver."""

    def __init__(self, generator: Generator, index: int) -> None:
        self.receiver = generator.join("receiver", index)
        self.sender = generator.join("sender", index)
        self.message = Message(self.receiver.id, "8000", generator.given["text"], delivery="steer")
        self.window = generator.given["window"]
        self.sent = self.answered = self.arrived = 0
        self.waiting = memoryview(b"")
        self.wants_room = False
        self.sent_ns = array.array("Q")

    @property
    def is_done(self) -> bool:
        return self.answered == self.sent == self.arrived

    def send_paced(self, number: int) -> None:
        self.sent_ns.append(time.perf_counter_ns())
        self.sender.say(self.message.numbered(number))

    def top_up(self, poller: select.epoll) -> None:
        if not self.waiting:
            room = range(self.sent, self.answered + self.window)
            self.waiting = memoryview(b"".join([self.message.numbered(number) for number in room]))
            self.sent = self.answered + self.window
        self.push(poller)

    def push(self, poller: select.epoll) -> None:
        try:
            self.waiting = self.waiting[self.sender.socket.send(self.waiting) :] if self.waiting else self.waiting
        except BlockingIOError:
            pass
        if self.wants_room != bool(self.waiting):
            self.wants_room = bool(self.waiting)
            wanted = select.EPOLLIN | (select.EPOLLOUT if self.wants_room else 0)
            poller.modify(self.sender.socket, wanted)

    def hear_receiver(self) -> None:
        self.receiver.fill()
        self.arrived += self.receiver.count_kinds(b"message")

    def hear_sender(self, poller: select.epoll, *, is_sending: bool) -> None:
        self.sender.fill()
        self.answered += self.sender.count_kinds(*_OUTCOMES)
        if is_sending:
            self.top_up(poller)
        else:
            self.push(poller)


def main(words: list[str]) -> None:
    """Run the measurement that the first word names; write its samples and say its report."""
    began_ns, generator = time.perf_counter_ns(), Generator(words[1:])
    known: dict[str, Callable[[], None]] = {
        "ack": generator.ack,
        "ask": generator.ask,
        "pace": generator.pace,
        "flow": generator.flow,
        "bulk": generator.bulk,
        "list": generator.list,
        "presence": generator.presence,
        "last": generator.last,
    }
    known[words[0]]()
    if generator.texts["samples"]:
        with open(generator.texts["samples"], "wb") as file:
            generator.samples.tofile(file)
    sys.stdout.write(generator.report(began_ns) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
