"""Restricting a test's own child process: another user, no right to connect, a hidden /proc.

Owns real restrictions of the kernel, so that tests meet the errors that users meet. Linux only.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it acts as another user")

# seccomp(2) through prctl(2): constants of <linux/prctl.h>, <linux/seccomp.h>, <linux/filter.h>.
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_LOAD_WORD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_RET_ALLOW, _RET_ERRNO = 0x7FFF0000, 0x00050000
_EPERM = 1
# The number of connect(2) by machine.
_CONNECT = {"x86_64": 42, "aarch64": 203}


def as_user(uid: int) -> None:
    """Become another user for good; needs root."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def forbid_connecting() -> None:
    """From now on connect() fails with EPERM in this process, as in an agent's sandbox."""
    forbid_system_call(_CONNECT[platform.machine()])


def forbid_system_call(number: int) -> None:
    """From now on that system call fails with EPERM in this process and in its children."""
    program = b"".join(
        struct.pack("=HBBI", code, if_true, if_false, value)
        for code, if_true, if_false, value in (
            (_LOAD_WORD, 0, 0, 0),
            (_JUMP_IF_EQUAL, 0, 1, number),
            (_RETURN, 0, 0, _RET_ERRNO | _EPERM),
            (_RETURN, 0, 0, _RET_ALLOW),
        )
    )
    filters = ctypes.create_string_buffer(program)
    # struct sock_fprog: a length, padding, a pointer.
    fprog = struct.pack("@HP", len(program) // 8, ctypes.addressof(filters))
    library = ctypes.CDLL(None, use_errno=True)
    for arguments in ((_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, fprog, 0, 0)):
        if library.prctl(*arguments) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
