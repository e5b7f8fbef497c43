"""macOS's answers: the layout of its structures, and no answer on a system without its calls."""

from __future__ import annotations

import struct
import sys

import pytest

from libintercom.ownership import macos

# struct proc_bsdinfo as <sys/proc_info.h> declares it: twelve numbers, two names, six numbers, two times.
BSD_INFO = struct.Struct("<12I16s32s6IQQ")


def bsd_info(pid: int, seconds: int, microseconds: int) -> bytes:
    numbers = [0, 2, 0, pid, 1, 501, 20, 501, 20, 501, 20, 0]
    return BSD_INFO.pack(*numbers, b"python3.12", b"python3.12", 40, pid, 0, 0, 0, 0, seconds, microseconds)


def test_the_structure_has_the_size_that_the_kernel_fills() -> None:
    assert BSD_INFO.size == macos.BSD_INFO_BYTES == 136


def test_birth_in_microseconds() -> None:
    assert macos.parse_birth_us(bsd_info(4711, 1_800_000_000, 123_456), 4711) == 1_800_000_000_123_456


def test_a_short_or_foreign_answer_is_none() -> None:
    whole = bsd_info(4711, 1_800_000_000, 0)
    assert macos.parse_birth_us(whole[:-1], 4711) is None
    assert macos.parse_birth_us(whole, 4712) is None


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (bytes(range(16)), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (bytes(16), None),
        (b"", None),
        (bytes(range(15)), None),
    ],
)
def test_a_host_uuid(raw: bytes, text: str | None) -> None:
    assert macos.format_uuid(raw) == text


@pytest.mark.skipif(sys.platform == "darwin", reason="here the calls exist")
def test_elsewhere_there_is_no_answer() -> None:
    assert macos.read_birth_us(1) is None
    assert macos.read_boot_session() is None
    assert macos.read_host_uuid() is None
