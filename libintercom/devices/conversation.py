"""One request to a device without its connection: what came, what may be written, how far it got. Pure.

Owns the certainty: nothing is handed out to be written before a marker line, and what comes before one is noise. Does
not own bytes' way to the device (``openssh``), clocks, nor what the end means (``judging``).
"""

from __future__ import annotations

from libintercom.devices.command import MARKERS, NODE
from libintercom.devices.words import MAX_LINE_BYTES, VERSION
from libintercom.errors import InvalidFrame
from libintercom.wire.frames import decode_json, encode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# All that one command may print, the empty lines of an hour's ask included.
MAX_OUTPUT_BYTES = 8 * 1024 * 1024
# Notices and the output of rc files before the marker; more is no login shell that works.
MAX_NOISE_BYTES = 1024 * 1024
# Enough of a line to know what it is about.
MAX_NOTE_BYTES = 1_000

# How far it got, in order.
CONNECTING, MARKED, HANDED_OVER, RECEIVED, ANSWERED = "connecting", "marked", "handed_over", "received", "answered"

# A device gets as long to connect, log in and begin: what ConnectTimeout does not cover (a stale multiplexing master,
# an endless banner) ends there.
MARKER_TIMEOUT_S = 20.0
# Registering (10 s), a list (5 s) and an acknowledgement (8 s) at the other broker, and the way.
ANSWER_TIMEOUT_S = 30.0
# The other side waits for the reply and tells its end; this is for the way.
REPLY_MARGIN_S = 15.0


class Request:
    """What is asked of a device. ``finals`` are the members of which one makes a reply complete.

    ``message_id``: whose receipt counts. ``reply_timeout_s``: how long the other side waits for a reply.
    """

    def __init__(
        self,
        members: Mapping[str, Any],
        finals: tuple[str, ...],
        *,
        message_id: str = "",
        reply_timeout_s: float = 0.0,
    ) -> None:
        self.members, self.finals = members, (*finals, "error")
        self.message_id, self.reply_timeout_s = message_id, reply_timeout_s

    def line(self) -> bytes:
        return encode_json({"version": VERSION, **self.members}) + b"\n"


class Conversation:
    """Feed it what the command printed, write what it gives out, look at how far it got.

    ``marker`` is who answered ("" so far nobody), ``receipt`` and ``answer`` are the JSON objects that came.
    ``fault`` says what a device did that ends the conversation at once.
    """

    def __init__(self, request: Request) -> None:
        self._request, self._line = request, b""
        self._unread, self._seen_bytes, self._written = bytearray(), 0, 0
        self.marker = self.noise = self.fault = ""
        self.receipt: dict[str, Any] | None = None
        self.answer: dict[str, Any] | None = None

    @property
    def stage(self) -> str:
        if self.answer is not None:
            return ANSWERED
        if self.receipt is not None:
            return RECEIVED
        if not self.marker:
            return CONNECTING
        return HANDED_OVER if self.is_handed_over else MARKED

    @property
    def is_handed_over(self) -> bool:
        """Whether the device may have the whole request; a part of it is no JSON, which no command acts on."""
        return bool(self._line) and self._written >= len(self._line)

    @property
    def closes_input(self) -> bool:
        """Whether standard input ends behind the request: ours takes that as a withdrawal, the other needs no more."""
        return self.marker == NODE and self.is_handed_over

    @property
    def patience_s(self) -> float:
        """How long the present stage may take."""
        if self.stage == CONNECTING:
            return MARKER_TIMEOUT_S
        return self._request.reply_timeout_s + REPLY_MARGIN_S if self.stage == RECEIVED else ANSWER_TIMEOUT_S

    def output(self) -> memoryview:
        """What may be written now."""
        if self.marker and not self._line:
            self._line = self._request.line()
        return memoryview(self._line)[self._written :]

    def wrote(self, count: int) -> None:
        """So many bytes of ``output`` were taken."""
        self._written += count

    def receive(self, chunk: bytes) -> None:
        """What the command printed further."""
        self._seen_bytes += len(chunk)
        if b"\n" in chunk:
            *lines, rest = (bytes(self._unread) + chunk).split(b"\n")
            self._unread = bytearray(rest)
            # The empty lines of a waiting command say nothing, and a flood of them costs nothing here.
            for line in filter(None, lines):
                if not self.fault:
                    self._take(line)
        else:
            self._unread += chunk
        self._check_sizes()

    def finish(self) -> None:
        """Nothing comes any more: what stands without an end of line is the last line."""
        line, self._unread = bytes(self._unread), bytearray()
        if line and not self.fault:
            self._take(line)

    def _take(self, line: bytes) -> None:
        text = line.strip()
        if len(text) > MAX_LINE_BYTES:
            self.fault = f"it printed a line of more than {MAX_LINE_BYTES} bytes"
        elif not self.marker:
            self.marker = MARKERS.get(text, "")
            self._note(text)
        elif text.startswith(b"{"):
            self._take_object(text)
        else:
            self._note(text)

    def _note(self, text: bytes) -> None:
        """Keep the last words that are no answer, for a person."""
        if text and text not in MARKERS:
            self.noise = text[:MAX_NOTE_BYTES].decode("utf-8", "replace")

    def _take_object(self, text: bytes) -> None:
        try:
            told = decode_json(text)
        except InvalidFrame:
            self._note(text)
            return
        if told.get("version") != VERSION or isinstance(told["version"], bool):
            version = f"{told.get('version')!r:.40}"
            self.noise = f"it answers in version {version} of the command; this program reads {VERSION}"
            return
        # Whatever it confirms, it had to be asked first; it may always say why it cannot be asked.
        if self.is_handed_over and self._is_receipt(told.get("receipt")):
            self.receipt = told["receipt"]
        if any(name in told for name in (self._request.finals if self.is_handed_over else ("error",))):
            self.answer = told

    def _is_receipt(self, told: object) -> bool:
        """Whether a broker accepted this very message."""
        if not isinstance(told, dict) or told.get("accepted") is not True:
            return False
        return bool(told.get("id", self._request.message_id) == self._request.message_id)

    def _check_sizes(self) -> None:
        if len(self._unread) > MAX_LINE_BYTES:
            self.fault = f"it printed a line of more than {MAX_LINE_BYTES} bytes"
        elif not self.marker and self._seen_bytes > MAX_NOISE_BYTES:
            self.fault = f"it printed more than {MAX_NOISE_BYTES} bytes before the command began"
        elif self._seen_bytes > MAX_OUTPUT_BYTES:
            self.fault = f"it printed more than {MAX_OUTPUT_BYTES} bytes"
        if self.fault:
            self._unread = bytearray()
