"""Encounters with places: directories and parents that cannot be trusted, paths, filesystems, and what is no socket."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from libintercom.paths import RUNTIME_DIR_VARIABLE, SOCKET_PATH_LIMIT_BYTES
from tests.trials.privileges import NAMESPACES, ROOT
from tests.trials.verdicts.candidates import Report, mounted
from tests.trials.verdicts.encounter import ALREADY, ERROR, READY, encounter

if TYPE_CHECKING:
    from tests.trials.verdicts.scene import Scene

_NOBODY = 65_534
# statfs(2): the type of an NFS mount.
_FAKE_STATFS = """
#include <sys/vfs.h>
#include <string.h>
int fstatfs(int fd, struct statfs *seen) { memset(seen, 0, sizeof *seen); seen->f_type = 0x6969; return 0; }
int fstatfs64(int fd, struct statfs64 *seen) { memset(seen, 0, sizeof *seen); seen->f_type = 0x6969; return 0; }
"""


# ---------------------------------------------------------------- the directory


@encounter("a foreign directory", ERROR, "belongs to another user", (ROOT,))
def _foreign(scene: Scene) -> Report:
    os.chown(scene.own.directory, _NOBODY, _NOBODY)
    return scene.run()


@encounter("a directory that others may enter", ERROR, "its mode is 0755")
def _open(scene: Scene) -> Report:
    os.chmod(scene.own.directory, 0o755)
    return scene.run()


@encounter("a sticky parent of another user", ERROR, "can move what lies below", (ROOT,))
def _sticky(scene: Scene) -> Report:
    os.chown(scene.own.parent, _NOBODY, _NOBODY)
    os.chmod(scene.own.parent, 0o1777)
    return scene.run()


@encounter("a parent in which everybody may rename", ERROR, "everybody may rename")
def _loose(scene: Scene) -> Report:
    os.chmod(scene.own.parent, 0o777)
    return scene.run()


@encounter("a symbolic link in the place of the directory", ERROR, "it is a symbolic link")
def _link(scene: Scene) -> Report:
    os.rename(scene.own.directory, f"{scene.own.directory}-real")
    os.symlink(f"{scene.own.directory}-real", scene.own.directory)
    return scene.run()


@encounter("a file in the place of the directory", ERROR, "in the place of its directory is none")
def _file(scene: Scene) -> Report:
    os.rmdir(scene.own.directory)
    Path(scene.own.directory).touch()
    return scene.run()


def _long(scene: Scene, size_bytes: int, filling: str) -> Report:
    """A directory whose socket path takes so many bytes."""
    base = f"{scene.own.parent}/"
    left = size_bytes - len(f"{base}/broker.sock")
    name = filling * (left // len(filling.encode())) + "x" * (left % len(filling.encode()))
    scene.seen = f"{size_bytes} bytes, {len(base + name) + len('/broker.sock')} characters"
    scene.own.rename(base + name)
    return scene.run()


@encounter("a socket path of 100 bytes", READY)
def _fits(scene: Scene) -> Report:
    return _long(scene, SOCKET_PATH_LIMIT_BYTES, "x")


@encounter("a socket path of 101 bytes", ERROR, "takes 101 bytes; the limit is 100")
def _too_long(scene: Scene) -> Report:
    return _long(scene, SOCKET_PATH_LIMIT_BYTES + 1, "x")


@encounter("a socket path of 101 bytes and fewer characters", ERROR, "takes 101 bytes; the limit is 100")
def _too_wide(scene: Scene) -> Report:
    return _long(scene, SOCKET_PATH_LIMIT_BYTES + 1, "ü")


@encounter("a relative override", ERROR, "is not an absolute path")
def _relative(scene: Scene) -> Report:
    return scene.run(variables={RUNTIME_DIR_VARIABLE: "tmp/r"})


@encounter("a network filesystem, by statfs", ERROR, "on a network filesystem (nfs)", (ROOT, NAMESPACES, "cc"))
def _network(scene: Scene) -> Report:
    source, built = f"{scene.own.parent}/fake.c", f"{scene.own.parent}/fake.so"
    Path(source).write_text(_FAKE_STATFS)
    subprocess.run(["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", built, source], check=True)
    # Without /proc nothing else tells which filesystem it is.
    return scene.run(mounted("mount -t tmpfs tmpfs /proc"), variables={"LD_PRELOAD": built})


# ---------------------------------------------------------------- the socket


@encounter("connect says EPERM", ERROR, "not permitted to connect")
def _sandboxed(scene: Scene) -> Report:
    scene.broker()
    return scene.run(restriction="forbid_connecting()")


@encounter("a socket of another user", ERROR, "belongs to uid 65534", (ROOT,))
def _foreign_socket(scene: Scene) -> Report:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(scene.places.socket)
        other.listen()
        os.chown(scene.places.socket, _NOBODY, _NOBODY)
        return scene.run()


@encounter("a file in the place of the socket", ERROR, "is not a socket")
def _no_socket(scene: Scene) -> Report:
    Path(scene.places.socket).write_text("notes\n")
    return scene.run()


@encounter("another program's socket, nobody behind it", READY)
def _dead_socket(scene: Scene) -> Report:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(scene.places.socket)
    return scene.run()


@encounter("another program's listener, no record", ALREADY, "a broker listens")
def _other_listener(scene: Scene) -> Report:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(scene.places.socket)
        other.listen()
        return scene.run()
