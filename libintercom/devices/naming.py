"""Whom ``name@device`` means (seeds, "Send to and ask a main on another device"). Pure.

Owns telling such a target from a local one. Does not own which devices there are (``settings``) nor the part before
the ``@``, which the other device resolves.
"""

from __future__ import annotations

from libintercom.devices.words import ID_PREFIX
from libintercom.errors import IntercomError
from libintercom.targets import name_key
from libintercom.wire.values import js_trim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from libintercom.devices.settings import Devices
    from libintercom.wire.messages import Row


class OwnDevice(IntercomError):
    """The target names this device; ``remaining`` is the target to use instead."""

    code = "own_device"

    def __init__(self, to: str, own: str, remaining: str) -> None:
        super().__init__(to, own, remaining)
        self.to, self.own, self.remaining = to, own, remaining

    def __str__(self) -> str:
        use = f'Use "{self.remaining}"' if self.remaining else "Name one of its sessions"
        return f'"{self.to}" is on this device ({self.own}). {use}. Nothing was sent.'


class NoSession(IntercomError):
    """Nothing stands before the ``@``."""

    code = "no_session"

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.device = device

    def __str__(self) -> str:
        return f'"@{self.device}" names no session; put its name or ID before the "@". Nothing was sent.'


class NotAMain(IntercomError):
    """A child wanted to reach another device."""

    code = "not_a_main"

    def __str__(self) -> str:
        return (
            "Only a main session can list, message or ask the main sessions of other devices. Ask your main; it "
            "handles what involves another device. Nothing was sent."
        )


class DeviceTarget:
    """A session on another device: ``to`` is its target there, ``device`` the configured name."""

    __slots__ = ("device", "to")

    def __init__(self, to: str, device: str) -> None:
        self.to, self.device = to, device

    def __str__(self) -> str:
        return f"{self.to}@{self.device}"

    def __repr__(self) -> str:
        return f"DeviceTarget({self.to!r}, {self.device!r})"


def find_target(to: str, devices: Devices) -> DeviceTarget | None:
    """The session on another device that ``to`` means, or None: a local target.

    The text behind the last ``@`` decides, in any letter case, also where a local session has that very name.

    Raises:
        OwnDevice: it names this device.
        NoSession: it names a device and no session.
    """
    name, at, device = js_trim(to).rpartition("@")
    if not at or not devices.others:
        return None
    if devices.is_own(device):
        raise OwnDevice(to, devices.own, js_trim(name))
    found = devices.find(device)
    if found is None:
        return None
    if not js_trim(name):
        raise NoSession(found)
    return DeviceTarget(js_trim(name), found)


def find_waiting(to: str, rows: Iterable[Row]) -> str:
    """The peer ID of the main here that speaks for ``to`` while its ask waits; "" when none or more than one does.

    An answer to it (``replyTo``) goes there, through the broker of this device, never to the asker's device.
    """
    key = name_key(to)
    waiting = [row.id for row in rows if row.id.startswith(ID_PREFIX) and name_key(row.name or "") == key]
    return waiting[0] if len(waiting) == 1 else ""


def require_main(*, is_child: bool) -> None:
    """Raise NotAMain for a child: a coordination rule like the group rules."""
    if is_child:
        raise NotAMain
