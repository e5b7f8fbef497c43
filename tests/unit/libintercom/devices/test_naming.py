"""Which targets are on another device: the text behind the last @ decides."""

from __future__ import annotations

import pytest

from libintercom.devices.naming import (
    DeviceTarget,
    NoSession,
    NotAMain,
    OwnDevice,
    find_target,
    find_waiting,
    require_main,
)
from libintercom.devices.settings import Devices
from libintercom.wire.messages import Row

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


def row(peer_id: str, name: str) -> Row:
    return Row(id=peer_id, cwd="/", model="m", name=name)


def test_who_waits_for_an_answer_here_is_found_by_the_name_it_asks_under() -> None:
    rows = [row("remote-1", "web@laptop"), row("pi-1", "api@laptop"), row("remote-2", "two@laptop")]
    assert find_waiting("Web@Laptop", rows) == "remote-1"
    assert find_waiting("api@laptop", rows) == ""
    assert find_waiting("two@laptop", [*rows, row("remote-3", "two@laptop")]) == ""


def test_only_a_main_reaches_other_devices() -> None:
    require_main(is_child=False)
    with pytest.raises(NotAMain, match="Ask your main"):
        require_main(is_child=True)
    assert repr(DeviceTarget("a", "b")) == "DeviceTarget('a', 'b')"
