"""What waits for one connection's socket: the truthful writer.

Owns the queue of pieces, giving them to the kernel, and saying which tokens went out whole. Does not own when it is
asked to write (``listener``) nor what the pieces say (``codec``).

A socket of the loop's own transport would take any write into user space and call it written; here a token is taken
only when the kernel has every byte of its frame.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from libintercom.errors import TooLarge
from libintercom.wire.codec import join_incoming
from libintercom.wire.frames import HEADER_BYTES, MAX_FRAME_BYTES

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

# Buffers in one sendmsg (POSIX asks for 16 at least; Linux and macOS have 1024).
_MAX_PIECES = os.sysconf("SC_IOV_MAX") if os.sysconf("SC_IOV_MAX") > 0 else 16
# Offered in one call: a little more than a Unix socket buffers by default (208 KiB), so that one call fills it.
_MAX_OFFER_BYTES = 256 * 1024
# Up to here one copy into a whole frame is cheaper than three more buffers in the call (measured).
_JOIN_BYTES = 16 * 1024
_HEAD, _MIDDLE, _TAIL = join_incoming(b"\0", b"\0").split(b"\0")


class Output:
    """One connection's output. ``waiting_bytes`` are not yet with the kernel; ``is_blocked`` until it takes more."""

    __slots__ = ("_fresh", "_pieces", "_socket", "_tokens", "is_blocked", "waiting_bytes")

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._pieces: list[bytes | memoryview] = []
        # Beside each piece the token that is taken with it: that of its frame on the last piece, else None.
        self._tokens: list[int | None] = []
        # Tokens that no write has been tried for.
        self._fresh: list[int] = []
        self.waiting_bytes = 0
        self.is_blocked = False

    def append(self, framed: bytes) -> None:
        """Queue a whole frame, its header included, without a token. It is not copied: many outputs may share it."""
        self._pieces.append(framed)
        self._tokens.append(None)
        self.waiting_bytes += len(framed)

    def append_message(self, sender: bytes, message: bytes, token: int) -> None:
        """Queue a ``message`` frame; ``token`` is taken when the kernel has all of it.

        Raises:
            TooLarge: over the frame limit; nothing was queued.
        """
        self.append_messages(sender, (message,), (token,))

    def append_messages(self, sender: bytes, messages: Sequence[bytes], tokens: Sequence[int]) -> None:
        """The same for several messages with one row, each with its own token."""
        before = b"".join((_HEAD, sender, _MIDDLE))
        pieces, owners, around, total = self._pieces, self._tokens, len(before) + len(_TAIL), 0
        for message, token in zip(messages, tokens, strict=True):
            size = around + len(message)
            if size <= _JOIN_BYTES:
                pieces.append(b"".join((size.to_bytes(HEADER_BYTES, "big"), before, message, _TAIL)))
            elif size > MAX_FRAME_BYTES:
                raise TooLarge(size, MAX_FRAME_BYTES)
            else:
                pieces += (size.to_bytes(HEADER_BYTES, "big") + before, message, _TAIL)
                owners += (None, None)
            owners.append(token)
            total += HEADER_BYTES + size
        self._fresh += tokens
        self.waiting_bytes += total

    def write_at_once(self, taken: list[int]) -> bool:
        """The usual case of ``write``: one piece, nothing before it, and the kernel takes it whole.

        False when it is another case; then ``write`` goes on, and tells what is wrong.
        """
        pieces = self._pieces
        if self.is_blocked or len(pieces) != 1:
            return False
        try:
            sent = self._socket.send(pieces[0])
        except OSError:
            return False
        if sent != self.waiting_bytes:
            self._settle(sent, taken)
            return False
        pieces.clear()
        self._tokens.clear()
        self.waiting_bytes = 0
        if self._fresh:
            taken += self._fresh
            self._fresh.clear()
        return True

    def write(self, taken: list[int]) -> bool:
        """Give the kernel what it takes now, and say whether that was everything.

        ``taken`` learns the tokens whose frames went out whole.

        Raises:
            OSError: the peer is gone; what was taken before is in ``taken`` all the same.
        """
        while self._pieces:
            offered, offered_bytes = self._offer()
            try:
                sent = self._socket.sendmsg(offered) if len(offered) > 1 else self._socket.send(offered[0])
            except BlockingIOError:
                self.is_blocked = True
                return False
            self._settle(sent, taken)
            if sent < offered_bytes:
                self.is_blocked = True
                return False
        self.is_blocked = False
        return True

    def pop_held(self, taken: list[int]) -> list[int]:
        """The tokens that a first try (which took ``taken``) left here, each told once."""
        gone = set(taken)
        held = [token for token in self._fresh if token not in gone]
        self.forget_fresh()
        return held

    def forget_fresh(self) -> None:
        """The tokens of this turn are settled."""
        if self._fresh:
            self._fresh = []

    def _offer(self) -> tuple[list[bytes | memoryview], int]:
        """The pieces for one call, and their size."""
        pieces = self._pieces
        if self.waiting_bytes <= _MAX_OFFER_BYTES and len(pieces) <= _MAX_PIECES:
            return pieces, self.waiting_bytes
        offered, size = [], 0
        for piece in pieces[:_MAX_PIECES]:
            offered.append(piece)
            size += len(piece)
            if size >= _MAX_OFFER_BYTES:
                break
        return offered, size

    def _settle(self, sent: int, taken: list[int]) -> None:
        """Drop what the kernel took."""
        pieces, tokens = self._pieces, self._tokens
        if sent == self.waiting_bytes:
            taken += [token for token in tokens if token is not None]
            self._pieces, self._tokens = [], []
            self.waiting_bytes = 0
            return
        self.waiting_bytes -= sent
        count = 0
        while sent >= len(pieces[count]):
            sent -= len(pieces[count])
            count += 1
        if sent:
            # A view: cutting bytes would copy the rest of a large message for each part that goes out.
            pieces[count] = memoryview(pieces[count])[sent:]
        taken += [token for token in tokens[:count] if token is not None]
        del pieces[:count], tokens[:count]
