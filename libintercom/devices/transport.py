"""What carries a conversation to a device: the contract, and the caller's part in it.

Owns the protocol that the ssh program fulfils (``openssh``) and that a kept connection may fulfil for long-lived
programs, and the withdrawal of a request. Does not own what is said.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol, Self

    from libintercom.devices.conversation import Conversation
    from libintercom.devices.endings import Ending

    class Transport(Protocol):
        """Carries one conversation. It writes only what the conversation gives out, and leaves nothing running."""

        def converse(self, device: str, conversation: Conversation, hooks: Hooks) -> Ending:
            """Run the remote command on ``device`` until the conversation is over; never raises for what a device is.

            ``hooks.withdrawal`` ends it early: standard input closes, and what the other side still says is heard for
            a moment.
            """


class Withdrawal:
    """The caller's wish that a request ends; any thread may say it, once, to any number of requests.

    Use it in a ``with`` block: it holds a pipe, by which a waiting request hears it at once.
    """

    def __init__(self) -> None:
        self._read_end, self._write_end = os.pipe()
        self.is_said = False

    def say(self) -> None:
        if not self.is_said:
            self.is_said = True
            os.write(self._write_end, b".")

    def fileno(self) -> int:
        """Readable once the wish was said, and ever after."""
        return self._read_end

    def close(self) -> None:
        os.close(self._read_end)
        os.close(self._write_end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()


class Hooks:
    """What the caller of a request takes part in: withdrawing it, and hearing how far it got (``on_stage(stage)``)."""

    __slots__ = ("on_stage", "withdrawal")

    def __init__(self, withdrawal: Withdrawal | None = None, on_stage: Callable[[str], object] | None = None) -> None:
        self.withdrawal, self.on_stage = withdrawal, on_stage
