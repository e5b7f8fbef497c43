"""Who a session is: native id, peer id, lineage, name, a child's environment, and its project.

Owns the rules that turn native ids and environment variables into what is registered (seeds "Discovery and groups";
wire.md 5.1 and 7; sessions.md section 1). Does not own what the broker makes of it.

Values are never trimmed into a different identity: what is padded, blank or half given is refused.
"""

from __future__ import annotations

import os

from libintercom.errors import InvalidConfiguration, InvalidLineage
from libintercom.wire.record import Record, optional, required
from libintercom.wire.values import LABEL, is_label, js_trim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ROOT_VARIABLE = "PI_INTERCOM_ROOT_SESSION_ID"
PARENT_VARIABLE = "PI_INTERCOM_PARENT_SESSION_ID"
# A name that no peer exports to its children, so that a child never takes its parent's id for its own.
NATIVE_ID_VARIABLE = "INTERCOM_NATIVE_SESSION_ID"
NAME_VARIABLE = "PI_SUBAGENT_INTERCOM_SESSION_NAME"

# wire.md 5.1: "pi-" and the first 32 hexadecimal characters of the digest; 8 characters of an unnamed session's id.
_PEER_PREFIX, _PEER_DIGEST_CHARS = "pi-", 32
_ALIAS_PREFIX, _ALIAS_CHARS, _NATIVE_PREFIX = "subagent-chat-", 8, "session-"


class Lineage(Record):
    """Where a session stands. ``root`` is its main's native id; ``parent`` is the same for a child, else absent."""

    root: str = required(LABEL)
    parent: str | None = optional(LABEL, default=None)

    @property
    def is_child(self) -> bool:
        return self.parent is not None


def peer_id(native_id: str) -> str:
    """The peer ID that a session with this native id asks for: the same one after each reconnect."""
    return _PEER_PREFIX + sha256_hex(_utf8(native_id))[:_PEER_DIGEST_CHARS]


def unnamed_alias(native_id: str) -> str:
    """What an unnamed session is called: ``subagent-chat-`` and 8 characters of its native id."""
    return _ALIAS_PREFIX + native_id.removeprefix(_NATIVE_PREFIX)[:_ALIAS_CHARS]


def find_native_id(option: str | None = None, environ: Mapping[str, str] | None = None) -> str:
    """The native id of this session: the option, else ``INTERCOM_NATIVE_SESSION_ID``, else a fresh random UUID.

    Raises:
        InvalidConfiguration: one is given and is empty, padded, too long or holds control characters.

    """
    given = os.environ if environ is None else environ
    if option is not None:
        return _checked_id("the command line", "--session-id", option)
    if NATIVE_ID_VARIABLE in given:
        return _checked_id("the environment", NATIVE_ID_VARIABLE, given[NATIVE_ID_VARIABLE])
    return make_uuid()


def find_lineage(native_id: str, environ: Mapping[str, str] | None = None) -> Lineage:
    """The lineage that the environment gives a session.

    Both variables unset: a main, which is its own root. Both set, equal and exact: a child of that main.

    Raises:
        InvalidLineage: anything else; such a session must not join at all.

    """
    given = os.environ if environ is None else environ
    root, parent = given.get(ROOT_VARIABLE), given.get(PARENT_VARIABLE)
    if root is None and parent is None:
        return Lineage(root=native_id)
    if root is None or parent is None:
        raise InvalidLineage(f"{ROOT_VARIABLE if root is None else PARENT_VARIABLE} is missing")
    for name, value in ((ROOT_VARIABLE, root), (PARENT_VARIABLE, parent)):
        wrong = _violation(value)
        if wrong:
            raise InvalidLineage(f"{name} {wrong}")
    if root != parent:
        raise InvalidLineage(f"{ROOT_VARIABLE} and {PARENT_VARIABLE} differ")
    return Lineage(root=root, parent=parent)


def child_environment(native_id: str) -> dict[str, str]:
    """Both lineage variables for a child that the main ``native_id`` launches; add them to the child's environment.

    Raises:
        InvalidLineage: the id could not be told exactly in an environment.

    """
    wrong = _violation(native_id)
    if wrong:
        raise InvalidLineage(f"the main's native id {wrong}")
    return {ROOT_VARIABLE: native_id, PARENT_VARIABLE: native_id}


def find_name(environ: Mapping[str, str] | None = None) -> str | None:
    """The session name that the environment sets, trimmed; ``None`` when it sets none.

    Raises:
        InvalidConfiguration: it holds control characters or is too long for a label.

    """
    given = os.environ if environ is None else environ
    name = js_trim(given.get(NAME_VARIABLE, ""))
    if name and not is_label(name):
        raise InvalidConfiguration("the environment", NAME_VARIABLE, f"{name!r:.80} is not a label")
    return name or None


def project_id(cwd: str) -> str:
    """64 hexadecimal characters that all working directories and worktrees of one project share.

    It is the digest of the repository's common directory, else of the directory's real path. Never fails.
    """
    real = os.path.realpath(cwd)
    from libintercom.projects import find_common_dir  # imported here: only a session that joins has a project

    common = find_common_dir(real)
    return sha256_hex(os.fsencode(f"git:{common}" if common else f"cwd:{real}"))


def make_uuid() -> str:
    """A random UUID, version 4 (RFC 9562); the module ``uuid`` takes longer to load than the whole client."""
    number = int.from_bytes(os.urandom(16), "big")
    number = number & ~(0xF << 76) | 4 << 76
    text = f"{number & ~(0x3 << 62) | 0x2 << 62:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def sha256_hex(raw: bytes) -> str:
    """The hexadecimal SHA-256 of ``raw``, through the interpreter's own module where it has one.

    ``hashlib`` loads OpenSSL, which takes half as long as the start of a bare interpreter.
    """
    return str(_digest_class()(raw).hexdigest())


def _digest_class() -> Any:
    for name in ("_sha2", "_sha256"):  # Python 3.12 and newer; 3.9 to 3.11
        try:
            return __import__(name).sha256
        except ImportError:
            continue
    from hashlib import sha256  # builds that rely on OpenSSL alone

    return sha256


def _checked_id(source: str, key: str, value: str) -> str:
    wrong = _violation(value)
    if wrong:
        raise InvalidConfiguration(source, key, f"{value!r:.80} {wrong}")
    return value


def _violation(value: str) -> str:
    """What keeps a text from being a native id, or ``""``; both languages' ideas of white space count."""
    if not js_trim(value).strip():
        return "is empty"
    if js_trim(value) != value or value.strip() != value:
        return "is padded with white space"
    if not is_label(value):
        return "is too long or holds control characters"
    return ""


def _utf8(text: str) -> bytes:
    """UTF-8 as JavaScript makes it: a lone surrogate becomes the replacement character."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")
