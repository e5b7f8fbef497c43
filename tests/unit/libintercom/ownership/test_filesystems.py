"""Network filesystems: named by mountinfo, by statfs where /proc is hidden, and by macOS's own structure."""

from __future__ import annotations

import os
import struct
import sys
from typing import TYPE_CHECKING

import pytest

from libintercom.ownership import filesystems

if TYPE_CHECKING:
    from pathlib import Path

MOUNTINFO = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
31 27 0:28 / /home/a\\040b rw,relatime shared:1 - nfs4 server:/home rw,vers=4.2
3 27 0:29 / /mnt/- rw,relatime master:2 propagate_from:1 - fuse.sshfs host:/ rw
"""


@pytest.mark.parametrize(
    ("mount_id", "kind"), [("27", "ext4"), ("31", "nfs4"), ("3", "fuse.sshfs"), ("1", ""), ("", "")]
)
def test_the_type_of_a_mount(mount_id: str, kind: str) -> None:
    assert filesystems.find_mount_type(MOUNTINFO, mount_id) == kind


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "fuse.sshfs", "afs"])
def test_network_types(kind: str) -> None:
    assert kind in filesystems.NETWORK_TYPES


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "f2fs", "zfs", "fuse.fuse-overlayfs"])
def test_local_types(kind: str) -> None:
    assert kind not in filesystems.NETWORK_TYPES


@pytest.mark.parametrize(
    ("magic", "kind"), [(0x6969, "nfs"), (0xFF534D42, "cifs"), (0x01021997, "9p"), (0xEF53, ""), (0x01021994, "")]
)
def test_statfs_numbers(magic: int, kind: str) -> None:
    assert filesystems.parse_linux_statfs(struct.pack("=q", magic) + bytes(112)) == kind


def test_statfs_that_cannot_be_had_is_no_reason_to_refuse() -> None:
    assert filesystems.parse_linux_statfs(b"") == ""
    assert filesystems.parse_macos_statfs(b"") == ""


# struct statfs of macOS with 64-bit inodes, up to f_fstypename.
MACOS_STATFS = struct.Struct("<Ii5Q2iIIII16s")


@pytest.mark.parametrize(
    ("flags", "name", "kind"),
    [
        (0x1000, b"apfs", ""),
        (0x0, b"smbfs", "smbfs"),
        (0x0, b"nfs", "nfs"),
        (0x9000, b"hfs", ""),
        (0x0, b"", "unknown"),
    ],
)
def test_macos_says_whether_a_mount_is_local(flags: int, name: bytes, kind: str) -> None:
    raw = MACOS_STATFS.pack(4096, 4096, 1, 1, 1, 1, 1, 0, 0, 501, 26, flags, 0, name)
    assert filesystems.parse_macos_statfs(raw + bytes(2048)) == kind


@pytest.mark.skipif(sys.platform != "linux", reason="the constants are Linux's")
def test_this_directory_is_local_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        assert filesystems.read_network_type(fd) == ""
        assert filesystems._read_mount_type(fd) != ""
        raw = filesystems._read_statfs(fd, ("fstatfs64", "fstatfs"))
        assert int.from_bytes(raw[:4], sys.byteorder) != 0
        # Without /proc the number is asked for; here it is made to be that of NFS.
        monkeypatch.setattr(filesystems, "_read_mount_type", lambda _fd: "")
        monkeypatch.setattr(filesystems, "_read_statfs", lambda _fd, _names: struct.pack("=q", 0x6969))
        assert filesystems.read_network_type(fd) == "nfs"
    finally:
        os.close(fd)
