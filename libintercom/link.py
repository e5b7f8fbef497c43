"""The bytes of one connection: a non-blocking socket under an exchange, the same for both clients.

Owns what the kernel took and gave, and what a broken connection still held. Does not own waiting (``client``,
``aio``) nor opening the socket (``endpoint``).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from libintercom.calls import Exchange

# One read; as much as the broker itself takes from a connection in a turn.
_READ_BYTES = 65_536
# shutdown(2): no more is written; the broker reads to the end and closes.
_SHUT_WR = 1
_INTERRUPTED = "interrupted in the middle of the stream"
_INHERITED = "it belongs to the program that this one was forked from"


class Link:
    """A connected socket and its exchange. Nothing here blocks, or raises for what the connection does.

    The socket stays open when the exchange ended, until ``close``: whoever watches it lets go of it first. A signal
    that interrupts a read or a write half-way ends the exchange, for nobody knows then where in the stream it stands.
    In a forked child it is over: the connection is its parent's.
    """

    def __init__(self, opened: socket.socket, exchange: Exchange) -> None:
        opened.setblocking(False)
        self._socket, self._exchange = opened, exchange
        self._pid = os.getpid()
        self._unsent = bytearray()

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def is_over(self) -> bool:
        """Nothing can be read or written any more."""
        return self._exchange.is_ended

    @property
    def wants_read(self) -> bool:
        return not self.is_over and self._exchange.wants_input

    @property
    def wants_write(self) -> bool:
        """Whether bytes wait that the kernel did not take yet."""
        return not self.is_over and bool(self._unsent)

    def write(self) -> None:
        """Hand the kernel as much of the exchange's output as it takes now."""
        self._check_owner()
        try:
            self._unsent += self._exchange.take_output()
            while self.wants_write:
                taken = self._socket.send(self._unsent)
                self._exchange.note_written(taken)
                del self._unsent[:taken]
        except BlockingIOError:
            pass
        except OSError as error:
            # What the broker said before it closed still counts.
            while self.read():
                pass
            self._lose(error)
        except BaseException:
            # All of it may have left: "not sent" cannot be claimed for any of it.
            self._exchange.note_written(len(self._unsent))
            self._exchange.end(_INTERRUPTED)
            raise

    def read(self) -> bool:
        """Read once; False when there was nothing, or nothing will come any more."""
        self._check_owner()
        if self.is_over:
            return False
        try:
            self._take(self._socket.recv(_READ_BYTES))
        except BlockingIOError:
            return False
        except OSError as error:
            self._lose(error)
        except BaseException:
            self._exchange.end(_INTERRUPTED)
            raise
        return not self.is_over

    def half_close(self) -> None:
        """Write what waits and say that nothing follows."""
        self.write()
        if not self.is_over:
            try:
                self._socket.shutdown(_SHUT_WR)
            except OSError:
                # Gone already; the next read says so.
                pass

    def close(self) -> None:
        self._socket.close()

    def _check_owner(self) -> None:
        # A forked child shares the socket: whatever it said, its leaving included, would be said for its parent.
        if os.getpid() != self._pid:
            self._exchange.end(_INHERITED)

    def _take(self, received: bytes) -> None:
        if received:
            self._exchange.receive(received)
        else:
            self._exchange.end("the broker closed the connection", is_lost=True)

    def _lose(self, error: OSError) -> None:
        self._exchange.end(error.strerror or str(error), is_lost=isinstance(error, ConnectionError))
