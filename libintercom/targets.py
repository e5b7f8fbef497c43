"""Resolving and displaying targets (wire.md 14.1 and 6.1). Pure; the broker and every client use this one.

Owns what a text may mean: an exact peer ID, a name, or a peer ID's prefix. Does not own who may see whom:
an ``Index`` holds the sessions of one visible set, so a hidden session cannot take part in any way.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from libintercom.wire.values import js_trim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from libintercom.wire.messages import Row

# Shorter prefixes never select a session (seeds, "Identity and targeting").
MIN_PREFIX_CHARS = 8
# wire.md 14.1: how many sessions an answer may propose, and the longest name that is compared.
MAX_PROPOSED = 3
MAX_COMPARED_CHARS = 64
# Names further away than a third of their length are no typing mistakes, nor are ever more than a few edits.
_DISTANCE_DIVISOR = 3
_MAX_EDITS = 8
# Matrix cells that one search may fill (some 20 ms): look-alike names of the longest size would cost seconds.
MAX_COMPARED_CELLS = 100_000

FOUND = "found"
SELF = "self"
AMBIGUOUS = "ambiguous"
TOO_SHORT = "too_short"
UNKNOWN = "unknown"


def name_key(text: str) -> str:
    """How names compare: trimmed as JavaScript trims, letter case ignored."""
    return js_trim(text).lower()


class Index:
    """Sessions of one visible set, found by ID, name or ID prefix; every change costs O(log n) comparisons."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._by_name: dict[str, dict[str, None]] = {}
        self._sorted: list[tuple[str, str]] = []
        self._letters: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, peer_id: str) -> bool:
        return peer_id in self._names

    def add(self, peer_id: str, name: str | None) -> None:
        """Take a session in; an unnamed one is found by its ID alone."""
        insort(self._sorted, (peer_id.lower(), peer_id))
        self._names[peer_id] = ""
        self.rename(peer_id, name)

    def rename(self, peer_id: str, name: str | None) -> None:
        """Change a session's name."""
        self._forget_name(peer_id)
        key = name_key(name) if name else ""
        self._names[peer_id] = key
        if key:
            self._by_name.setdefault(key, {})[peer_id] = None
            self._letters.setdefault(key, _letters(key))

    def remove(self, peer_id: str) -> None:
        """Forget a session."""
        self._forget_name(peer_id)
        del self._names[peer_id]
        del self._sorted[bisect_left(self._sorted, (peer_id.lower(), peer_id))]

    def _forget_name(self, peer_id: str) -> None:
        key = self._names[peer_id]
        if key:
            del self._by_name[key][peer_id]
            if not self._by_name[key]:
                del self._by_name[key], self._letters[key]

    def named(self, key: str) -> Iterable[str]:
        """The IDs of the sessions whose name has this key."""
        return self._by_name.get(key, ())

    def starting_with(self, prefix: str) -> Iterator[str]:
        """The IDs that start with a lower-case prefix, in order."""
        at = bisect_left(self._sorted, (prefix, ""))
        while at < len(self._sorted) and self._sorted[at][0].startswith(prefix):
            yield self._sorted[at][1]
            at += 1

    def shared_prefix_chars(self, peer_id: str) -> int:
        """How many leading characters a session's ID shares with any other ID here."""
        lower = peer_id.lower()
        at = bisect_left(self._sorted, (lower, ""))
        near = self._sorted[max(0, at - 1) : at + 3]
        return max((_shared_chars(lower, other) for other, other_id in near if other_id != peer_id), default=0)

    def similar_names(self, key: str, furthest: int) -> list[tuple[int, str]]:
        """``(distance, ID)`` of sessions whose name is within ``furthest`` edits of ``key``."""
        wanted, size = _letters(key), len(key)
        differing = (
            (bin(letters ^ wanted).count("1"), name)
            for name, letters in self._letters.items()
            if abs(len(name) - size) <= furthest and len(name) <= MAX_COMPARED_CHARS
        )
        most = MAX_COMPARED_CELLS // (size * (2 * furthest + 1))
        # The likeliest first, so that the bound on comparisons leaves out the least likely.
        close = sorted(found for found in differing if found[0] <= 2 * furthest)[:most]
        distances = ((edit_distance(key, name, furthest), name) for _bits, name in close)
        return [(found, peer_id) for found, name in distances if found <= furthest for peer_id in self._by_name[name]]


class Resolution:
    """What a text means in a visible set: ``kind`` is one of this module's words, ``ids`` whom it may mean."""

    __slots__ = ("ids", "is_by_name", "kind")

    def __init__(self, kind: str, ids: Sequence[str] = (), *, is_by_name: bool = False) -> None:
        self.kind, self.ids, self.is_by_name = kind, ids, is_by_name

    def __repr__(self) -> str:
        return f"Resolution({self.kind}, {list(self.ids)})"


def resolve(to: str, indexes: Sequence[Index], own_id: str = "") -> Resolution:
    """Resolve ``to`` over the union of ``indexes``; the session ``own_id`` takes no part.

    An exact ID wins. Otherwise names and ID prefixes of at least ``MIN_PREFIX_CHARS`` are merged: one
    distinct session is ``FOUND``, more are ``AMBIGUOUS``. ``SELF``: only the asking session matches.
    ``TOO_SHORT``: nothing but a short ID prefix matches.
    """
    text = js_trim(to)
    for exact in (to, text):
        if exact and exact == own_id:
            return Resolution(SELF, (own_id,))
        if any(exact in index for index in indexes):
            return Resolution(FOUND, (exact,))
    key = text.lower()
    if not key:
        return Resolution(UNKNOWN)
    named = _others(own_id, (index.named(key) for index in indexes))
    is_prefix = len(key) >= MIN_PREFIX_CHARS or bool(named)
    prefixed = _others(own_id, (index.starting_with(key) for index in indexes)) if is_prefix else {}
    matching = list({**named, **prefixed})
    if matching:
        return Resolution(FOUND if len(matching) == 1 else AMBIGUOUS, matching, is_by_name=len(named) > 1)
    return _explain_none(key, indexes, own_id)


def _others(own_id: str, groups: Iterable[Iterable[str]]) -> dict[str, None]:
    return {peer_id: None for group in groups for peer_id in group if peer_id != own_id}


def _explain_none(key: str, indexes: Sequence[Index], own_id: str) -> Resolution:
    """Why no other session matches: only this one does, only a short prefix does, or nothing."""
    is_long = len(key) >= MIN_PREFIX_CHARS
    if any(own_id in index.named(key) for index in indexes) or (is_long and own_id.lower().startswith(key)):
        return Resolution(SELF, (own_id,))
    if not is_long and any(_first_others(index, key, own_id) for index in indexes):
        return Resolution(TOO_SHORT)
    return Resolution(UNKNOWN)


def _first_others(index: Index, key: str, own_id: str) -> list[str]:
    return [peer_id for peer_id, _at in zip(index.starting_with(key), range(2)) if peer_id != own_id][:1]


def find_row(rows: Sequence[Row], to: str) -> Row | None:
    """The one of these rows that a target means; None when it means none or several."""
    index = Index()
    for row in rows:
        index.add(row.id, row.name)
    found = resolve(to, (index,))
    by_id = {row.id: row for row in rows}
    return by_id[found.ids[0]] if found.kind == FOUND else None


def display_target(peer_id: str, indexes: Sequence[Index]) -> str:
    """The shortest ID prefix that means this session alone and is no name, else the full ID."""
    shared = max((index.shared_prefix_chars(peer_id) for index in indexes), default=0)
    target = peer_id[: max(MIN_PREFIX_CHARS, shared + 1)]
    if any(index.named(target.lower()) for index in indexes):
        return peer_id
    # What a reader trims or lower-cases differently at its new end would mean somebody else, or nobody.
    found = resolve(target, indexes)
    return target if found.kind == FOUND and found.ids[0] == peer_id else peer_id


def display_targets(sessions: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """The displayed target of each ``(ID, name)``, distinct among them."""
    index = Index()
    ids = []
    for peer_id, name in sessions:
        if peer_id not in index:
            index.add(peer_id, name)
            ids.append(peer_id)
    return {peer_id: display_target(peer_id, (index,)) for peer_id in ids}


def nearest(to: str, indexes: Sequence[Index], own_id: str = "") -> list[str]:
    """At most ``MAX_PROPOSED`` IDs whose names ``to`` may have meant, closest first."""
    key = name_key(to)[: MAX_COMPARED_CHARS + 1]
    if not key or len(key) > MAX_COMPARED_CHARS:
        return []
    furthest = furthest_typo(len(key))
    close = {peer_id: (far, peer_id) for index in indexes for far, peer_id in index.similar_names(key, furthest)}
    close.pop(own_id, None)
    return [peer_id for _far, peer_id in sorted(close.values())[:MAX_PROPOSED]]


def furthest_typo(size_chars: int) -> int:
    """How many edits a typing mistake in a name of this size may have."""
    return max(1, min(_MAX_EDITS, size_chars // _DISTANCE_DIVISOR))


def edit_distance(one: str, other: str, furthest: int) -> int:
    """Optimal-string-alignment distance (a swap of neighbours is one edit), ``furthest + 1`` when beyond it."""
    if abs(len(one) - len(other)) > furthest:
        return furthest + 1
    beyond = furthest + 1
    before: list[int] = []
    above = [min(column, beyond) for column in range(len(other) + 1)]
    for row, letter in enumerate(one, 1):
        # Only the band around the diagonal can hold a distance within the bound.
        first, last = max(1, row - furthest), min(len(other), row + furthest)
        line = [beyond] * (len(other) + 1)
        line[0] = min(row, beyond)
        for column in range(first, last + 1):
            counterpart = other[column - 1]
            best = min(above[column] + 1, line[column - 1] + 1, above[column - 1] + (letter != counterpart))
            if row > 1 < column and letter == other[column - 2] and one[row - 2] == counterpart:
                best = min(best, before[column - 2] + 1)
            line[column] = min(best, beyond)
        if min(line) >= beyond:
            return beyond
        before, above = above, line
    return above[-1]


def _letters(key: str) -> int:
    """A bit for each character (modulo 64): names within d edits differ in at most 2 d bits."""
    bits = 0
    for letter in key:
        bits |= 1 << (ord(letter) & 63)
    return bits


def _shared_chars(one: str, other: str) -> int:
    count = 0
    for left, right in zip(one, other):
        if left != right:
            break
        count += 1
    return count
