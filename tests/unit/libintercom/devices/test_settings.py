"""The two keys of the session settings: what is a device, and every mistake named by file, key and reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from libintercom.devices.settings import Devices, NoDevices, UnknownDevice, parse_devices, read_devices
from libintercom.errors import InvalidConfiguration

if TYPE_CHECKING:
    from pathlib import Path

PATH = "/home/me/.pi/agent/intercom/config.json"


def parsed(**members: object) -> Devices:
    return parse_devices(json.dumps(members), PATH)


def test_the_order_of_the_file_is_kept_and_this_device_left_out() -> None:
    devices = parsed(device="desk", otherDevices=["laptop", "Desk", "phone", "LAPTOP"], mystery=1)
    assert (devices.own, devices.others) == ("desk", ("laptop", "phone"))


@pytest.mark.parametrize(
    "members", [{}, {"device": "desk"}, {"otherDevices": ["laptop"]}, {"device": "a", "otherDevices": []}]
)
def test_nothing_is_reachable_until_both_keys_are_set(members: dict) -> None:
    devices = parsed(**members)
    with pytest.raises(NoDevices, match=r'"device".*"otherDevices".*config\.json'):
        devices.choose("all")


def test_no_file_is_no_device(tmp_path: Path) -> None:
    assert read_devices(str(tmp_path / "none.json")).others == ()


@pytest.mark.parametrize("name", ["laptop", "LAPTOP", "lApToP"])
def test_a_name_is_found_in_any_letter_case(name: str) -> None:
    devices = parsed(device="desk", otherDevices=["Laptop", "phone"])
    assert devices.choose(name) == ("Laptop",)
    assert devices.choose("ALL") == ("Laptop", "phone")


def test_an_unknown_name_shows_the_known_ones() -> None:
    devices = parsed(device="desk", otherDevices=["laptop"])
    with pytest.raises(UnknownDevice, match="laptop, or all"):
        devices.choose("labtop")
    with pytest.raises(UnknownDevice, match="is this device"):
        devices.choose("DESK")


BAD_NAMES = [
    "",
    "-oProxyCommand=x",
    "a b",
    "a@b",
    "a;b",
    "$(x)",
    "ä",
    "a\n",
    ".a",
    "all",
    "ALL",
    "a" * 256,
    3,
    None,
    ["x"],
]


@pytest.mark.parametrize("name", BAD_NAMES, ids=repr)
def test_what_is_no_name_is_an_error_with_file_key_and_reason(name: object) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        parsed(device="desk", otherDevices=["laptop", name])
    assert (refused.value.source, refused.value.key) == (PATH, "otherDevices[1]")
    if name is not None:
        with pytest.raises(InvalidConfiguration) as refused:
            parsed(device=name)
        assert refused.value.key == "device"


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"otherDevices": "laptop"}', "[" * 100_000], ids=lambda text: text[:20]
)
def test_a_broken_file_is_no_default(text: str) -> None:
    with pytest.raises(InvalidConfiguration, match=PATH):
        parse_devices(text, PATH)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bytes.json").write_bytes(b"\xff")
    with pytest.raises(InvalidConfiguration, match="not UTF-8"):
        read_devices(str(tmp_path / "bytes.json"))
    with pytest.raises(InvalidConfiguration, match="directory"):
        read_devices(str(tmp_path))
