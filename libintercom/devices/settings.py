"""Which devices there are: ``device`` and ``otherDevices`` of the session settings (seeds, "Device names").

Owns reading and judging the two keys; other keys of the file are other programs'. The file is read once by whoever
starts or reloads. Does not own where it is (``libintercom.paths``).
"""

from __future__ import annotations

import json
import re

from libintercom.errors import IntercomError, InvalidConfiguration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Letters, digits, ".", "_" and "-", a letter or digit first: no name is ever taken for an option of ssh. The longest
# host name of RFC 1035.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}", re.ASCII)
_NAME_RULE = "a device name has letters, digits, '.', '_' and '-', and starts with a letter or a digit"
# What a list takes instead of a name; a device of that name could not be told from it.
ALL = "all"
OWN_KEY, OTHERS_KEY = "device", "otherDevices"
_REMEDY = "No other device is reachable until it is corrected."


class NoDevices(IntercomError):
    """No other devices are configured; ``path`` is the file that would name them."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return (
            f'No other devices are configured. Set "{OWN_KEY}" (the name of this device) and "{OTHERS_KEY}" (the SSH '
            f"aliases of the others) in {self.path}."
        )


class UnknownDevice(IntercomError):
    """A name that is none of the configured devices."""

    def __init__(self, name: str, devices: Devices) -> None:
        super().__init__(name, devices)
        self.name, self.devices = name, devices

    def __str__(self) -> str:
        known = ", ".join(self.devices.others)
        if self.devices.is_own(self.name):
            return f'"{self.name}" is this device; its sessions are in the list without a device. Others: {known}.'
        return f'Unknown device "{self.name}". Configured in {self.devices.path}: {known}, or {ALL} for every one.'


class Devices:
    """This device's ``own`` name and its ``others``, in the order of the file; ``path`` is the file.

    Not configured (one key or both are missing, or no other device is left): ``others`` is empty.
    """

    def __init__(self, path: str, own: str = "", others: tuple[str, ...] = ()) -> None:
        self.path, self.own = path, own
        self.others = others if own else ()

    def find(self, name: str) -> str | None:
        """The other device of this name in any letter case, as it is configured."""
        wanted = name.lower()
        return next((one for one in self.others if one.lower() == wanted), None)

    def is_own(self, name: str) -> bool:
        return bool(self.own) and name.lower() == self.own.lower()

    def choose(self, name: str) -> tuple[str, ...]:
        """The devices that a list names: one, or every one.

        Raises:
            NoDevices, UnknownDevice: nothing was contacted.
        """
        if not self.others:
            raise NoDevices(self.path)
        if name.lower() == ALL:
            return self.others
        found = self.find(name)
        if found is None:
            raise UnknownDevice(name, self)
        return (found,)


def read_devices(path: str) -> Devices:
    """The devices that the session settings at ``path`` name (``Places.session_settings``); none without the file.

    Raises:
        InvalidConfiguration: the file or one of the two keys cannot be used; it names file, key and reason.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return Devices(path)
    except (OSError, UnicodeDecodeError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else "it is not UTF-8"
        raise InvalidConfiguration(path, "the whole file", str(reason), _REMEDY) from None
    return parse_devices(text, path)


def parse_devices(text: str, path: str) -> Devices:
    """The devices that a settings file's text names. Raises as ``read_devices``."""
    members = _members(text, path)
    given = members.get(OWN_KEY)
    own = "" if given is None else _checked(given, path, OWN_KEY)
    listed = members.get(OTHERS_KEY)
    if listed is not None and not isinstance(listed, list):
        raise InvalidConfiguration(path, OTHERS_KEY, "it is not a list of device names", _REMEDY)
    others: dict[str, str] = {}
    for index, entry in enumerate(listed or ()):
        name = _checked(entry, path, f"{OTHERS_KEY}[{index}]")
        if name.lower() != own.lower():
            others.setdefault(name.lower(), name)
    return Devices(path, own, tuple(others.values()))


def _members(text: str, path: str) -> dict[str, Any]:
    try:
        members = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidConfiguration(path, "the whole file", f"not JSON: {error}", _REMEDY) from None
    if not isinstance(members, dict):
        raise InvalidConfiguration(path, "the whole file", "it is not a JSON object", _REMEDY)
    return members


def _checked(value: object, path: str, key: str) -> str:
    if not isinstance(value, str) or _NAME.fullmatch(value) is None:
        raise InvalidConfiguration(path, key, f"{value!r:.80} is no device name; {_NAME_RULE}", _REMEDY)
    if value.lower() == ALL:
        raise InvalidConfiguration(path, key, f'"{value}" means every device and cannot be the name of one', _REMEDY)
    return value
