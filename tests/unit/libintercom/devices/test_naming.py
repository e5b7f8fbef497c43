"""Which targets are on another device: the text behind the last @ decides."""

from __future__ import annotations

import pytest

from libintercom.devices.naming import DeviceTarget, NoSession, NotAMain, OwnDevice, find_target, require_main
from libintercom.devices.settings import Devices

DEVICES = Devices("/c", "Desk", ("Laptop", "phone"))


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("api@laptop", ("api", "Laptop")),
        ("api@LAPTOP ", ("api", "Laptop")),
        (" web@desk@laptop", ("web@desk", "Laptop")),
        ("a b @phone", ("a b", "phone")),
        ("pi-12345678@phone", ("pi-12345678", "phone")),
    ],
)
def test_a_target_there(to: str, expected: tuple[str, str]) -> None:
    found = find_target(to, DEVICES)
    assert found is not None
    assert (found.to, found.device) == expected
    assert str(found) == "@".join(expected)


@pytest.mark.parametrize("to", ["api", "api@tablet", "laptop", "api@laptop2", "api@laptop.", "@", "api@"])
def test_a_local_target(to: str) -> None:
    assert find_target(to, DEVICES) is None


def test_without_configured_devices_every_target_is_local() -> None:
    assert find_target("api@laptop", Devices("/c", "desk", ())) is None
    assert find_target("api@laptop", Devices("/c", "", ("laptop",))) is None


def test_this_device_is_refused_with_the_target_to_use() -> None:
    with pytest.raises(OwnDevice, match='Use "api"') as refused:
        find_target("api@desk", DEVICES)
    assert (refused.value.exit_status, refused.value.code) == (1, "own_device")


def test_a_device_alone_names_no_session() -> None:
    with pytest.raises(NoSession, match="before the"):
        find_target("@laptop", DEVICES)


def test_only_a_main_reaches_other_devices() -> None:
    require_main(is_child=False)
    with pytest.raises(NotAMain, match="Ask your main"):
        require_main(is_child=True)
    assert repr(DeviceTarget("a", "b")) == "DeviceTarget('a', 'b')"
