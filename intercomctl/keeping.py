"""Questions of this user whose replies are kept for them after nobody waits any more (wire.md 9.7).

Owns the small file of each such question in the state directory, with the secret that its reply is fetched with. Does
not own asking, nor the broker that keeps the reply.
"""

from __future__ import annotations

import json
import os

from libintercom.errors import IntercomError
from libintercom.identity import sha256_hex
from libintercom.paths import find_places
from libintercom.wire.record import Record, dump_record, parse_record, required
from libintercom.wire.values import COUNT, HEX32, LABEL, NUMBER, STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDER = "asks"
_SUFFIX = ".json"
# A kept question is a few hundred bytes; what is longer was not written by us.
_MOST_BYTES = 64 * 1024
_VERSION = 1


class KeptAsk(Record):
    """One question. ``keep_until_ms``: when its broker forgets it; ``runtime_dir``: which broker that is."""

    version: int = required(COUNT)
    message_id: str = required(LABEL)
    reply_token: str = required(HEX32)
    to: str = required(STRING)
    asked_at_ms: int = required(COUNT)
    keep_until_ms: float = required(NUMBER)
    runtime_dir: str = required(STRING)


class NotKept(IntercomError):
    """The secret of a question could not be written, so its reply could not be fetched; nothing was sent."""

    def __init__(self, folder: str, reason: str) -> None:
        super().__init__(folder, reason)
        self.folder, self.reason = folder, reason

    def __str__(self) -> str:
        return (
            f"cannot keep a question in {self.folder}: {self.reason}. Make that folder writable, or ask with "
            "--keep-reply 0. Nothing was sent."
        )


def keep(message_id: str, token: str, to: str, now_ms: int, keep_s: float) -> None:
    """Write a question down before it is asked.

    Raises:
        NotKept: it cannot be written.

    """
    places = find_places()
    kept = KeptAsk(
        version=_VERSION,
        message_id=message_id,
        reply_token=token,
        to=to,
        asked_at_ms=now_ms,
        keep_until_ms=now_ms + 1000 * keep_s,
        runtime_dir=places.runtime_dir,
    )
    try:
        os.makedirs(_folder(), mode=0o700, exist_ok=True)
        _write(_path(message_id), json.dumps(dump_record(kept)).encode())
    except OSError as failure:
        raise NotKept(_folder(), failure.strerror or str(failure)) from None


def drop(message_id: str) -> None:
    """Nobody needs to ask for its reply any more."""
    try:
        os.unlink(_path(message_id))
    except OSError:
        # Gone already, or it stays until its broker has forgotten it, which ``pending --mine`` then says.
        return


def kept_asks() -> list[KeptAsk]:
    """The questions of the present broker, oldest first."""
    here = find_places().runtime_dir
    return sorted((one for one in _read_all() if one.runtime_dir == here), key=lambda one: one.asked_at_ms)


def find(message_id: str) -> KeptAsk | None:
    """One question, whichever broker keeps it."""
    return _read(_path(message_id))


def _folder() -> str:
    return os.path.join(find_places().state_dir, _FOLDER)


def _path(message_id: str) -> str:
    # An ID may hold what no file name may.
    return os.path.join(_folder(), sha256_hex(message_id.encode("utf-8", "surrogatepass")) + _SUFFIX)


def _write(path: str, raw: bytes) -> None:
    draft = f"{path}.{os.getpid()}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, raw)
        # A question that was asked and whose secret a power loss takes is one whose reply nobody gets.
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(draft, path)


def _read_all() -> Iterator[KeptAsk]:
    try:
        names = os.listdir(_folder())
    except OSError:
        return
    for name in names:
        kept = _read(os.path.join(_folder(), name)) if name.endswith(_SUFFIX) else None
        if kept is not None:
            yield kept


def _read(path: str) -> KeptAsk | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        kept: KeptAsk = parse_record(KeptAsk, json.loads(os.read(descriptor, _MOST_BYTES)))
        return kept
    except (OSError, ValueError, IntercomError):
        return None
    finally:
        os.close(descriptor)
