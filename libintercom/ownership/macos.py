"""What macOS says about a program and its machine, through its C library.

Owns the calls (libproc(3), sysctlbyname(3), gethostuuid(2)) and the layout of what they fill. Importable everywhere;
each reader answers ``None`` on a system without these calls. The layouts are checked by tests on recorded bytes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes

# proc_pidinfo flavor PROC_PIDTBSDINFO and the size of struct proc_bsdinfo (<sys/proc_info.h>).
_BSD_INFO_FLAVOR = 3
BSD_INFO_BYTES = 136
# pbi_pid, and pbi_start_tvsec with pbi_start_tvusec behind it, in that structure.
_PID_OFFSET, _START_OFFSET = 12, 120
_UUID_BYTES = 16
# "kern.bootsessionuuid" is a UUID in text; room for it and its end.
_BOOT_SESSION_BYTES = 64


def parse_birth_us(raw: bytes, pid: int) -> int | None:
    """Unix microseconds at which ``pid`` was started, from a filled struct proc_bsdinfo."""
    if len(raw) < BSD_INFO_BYTES or _number(raw, _PID_OFFSET, 4) != pid:
        return None
    return _number(raw, _START_OFFSET, 8) * 1_000_000 + _number(raw, _START_OFFSET + 8, 8)


def format_uuid(raw: bytes) -> str | None:
    """A host's UUID in its usual form; absent when the call left it zero."""
    if len(raw) != _UUID_BYTES or not any(raw):
        return None
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def read_birth_us(pid: int) -> int | None:
    import ctypes

    library = _library()
    if library is None or not hasattr(library, "proc_pidinfo"):
        return None
    filled = ctypes.create_string_buffer(BSD_INFO_BYTES)
    size = library.proc_pidinfo(pid, _BSD_INFO_FLAVOR, ctypes.c_uint64(0), filled, BSD_INFO_BYTES)
    return parse_birth_us(filled.raw, pid) if size == BSD_INFO_BYTES else None


def read_boot_session() -> str | None:
    """The UUID of this boot; the kernel makes a new one at each start."""
    import ctypes

    library = _library()
    if library is None or not hasattr(library, "sysctlbyname"):
        return None
    filled = ctypes.create_string_buffer(_BOOT_SESSION_BYTES)
    size = ctypes.c_size_t(_BOOT_SESSION_BYTES)
    if library.sysctlbyname(b"kern.bootsessionuuid", filled, ctypes.byref(size), None, ctypes.c_size_t(0)) != 0:
        return None
    return filled.value.decode("ascii", "replace") or None


def read_host_uuid() -> str | None:
    """The hardware's UUID, which stays the same over reinstallations."""
    import ctypes

    library = _library()
    if library is None or not hasattr(library, "gethostuuid"):
        return None
    filled = ctypes.create_string_buffer(_UUID_BYTES)
    # struct timespec: how long to wait for the answer, which the kernel has at hand.
    wait = (ctypes.c_long * 2)(1, 0)
    return format_uuid(filled.raw) if library.gethostuuid(filled, wait) == 0 else None


def _library() -> ctypes.CDLL | None:
    import ctypes

    try:
        return ctypes.CDLL(None)
    except OSError:
        return None


def _number(raw: bytes, offset: int, size_bytes: int) -> int:
    # Every Mac that Python 3.9 runs on is little-endian.
    return int.from_bytes(raw[offset : offset + size_bytes], "little")
