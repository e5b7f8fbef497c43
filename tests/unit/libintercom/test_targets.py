"""Resolving and displaying targets: against a naive model for any set of sessions, and each rule by name."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from libintercom import targets
from libintercom.targets import (
    AMBIGUOUS,
    FOUND,
    MAX_COMPARED_CHARS,
    MAX_PROPOSED,
    MIN_PREFIX_CHARS,
    SELF,
    TOO_SHORT,
    UNKNOWN,
    Index,
    display_target,
    display_targets,
    edit_distance,
    name_key,
    nearest,
    resolve,
)
from libintercom.wire.values import js_trim

# Few letters, so that prefixes, names and case variants meet; a blank, since siblings choose their IDs freely; the
# sigma, whose lower case depends on what follows it.
LETTERS = "abA Σ"
IDS = st.text(LETTERS, min_size=1, max_size=11).filter(lambda text: bool(js_trim(text)))
NAMES = st.none() | st.text(LETTERS + "\u00a0", min_size=1, max_size=10)
SESSIONS = st.dictionaries(IDS, NAMES, max_size=6)


def index_of(sessions: dict[str, str | None]) -> Index:
    index = Index()
    for peer_id, name in sessions.items():
        index.add(peer_id, name)
    return index


def split(sessions: dict[str, str | None]) -> list[Index]:
    """The same sessions in two disjoint indexes, as a main sees mains and its own children."""
    ids = list(sessions)
    return [index_of({peer_id: sessions[peer_id] for peer_id in half}) for half in (ids[::2], ids[1::2])]


def naive_resolve(to: str, sessions: dict[str, str | None], own_id: str) -> tuple[str, set[str]]:
    """The rules of wire.md 14.1 and 6.1, written down one after the other."""
    text = js_trim(to)
    for exact in (to, text):
        if exact and exact == own_id:
            return SELF, {own_id}
        if exact in sessions:
            return FOUND, {exact}
    key = text.lower()
    if not key:
        return UNKNOWN, set()
    named = {peer_id for peer_id, name in sessions.items() if name and js_trim(name).lower() == key}
    prefixed = {peer_id for peer_id in sessions if peer_id.lower().startswith(key)}
    matching = named - {own_id}
    if len(key) >= MIN_PREFIX_CHARS or matching:
        matching |= prefixed - {own_id}
    if matching:
        return (FOUND if len(matching) == 1 else AMBIGUOUS), matching
    if own_id in named or (len(key) >= MIN_PREFIX_CHARS and own_id in prefixed):
        return SELF, {own_id}
    return (TOO_SHORT if len(key) < MIN_PREFIX_CHARS and prefixed - {own_id} else UNKNOWN), set()


def naive_distance(one: str, other: str) -> int:
    """Optimal string alignment by its textbook matrix."""
    cost = [[row + column for column in range(len(other) + 1)] for row in range(len(one) + 1)]
    for row in range(1, len(one) + 1):
        for column in range(1, len(other) + 1):
            differs = one[row - 1] != other[column - 1]
            best = min(cost[row - 1][column] + 1, cost[row][column - 1] + 1, cost[row - 1][column - 1] + differs)
            if row > 1 and column > 1 and one[row - 1] == other[column - 2] and one[row - 2] == other[column - 1]:
                best = min(best, cost[row - 2][column - 2] + 1)
            cost[row][column] = best
    return cost[-1][-1]


# -- resolving -----------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(sessions=SESSIONS, to=st.text(LETTERS, max_size=11), place=st.integers(0, 6), cut=st.integers(1, 11))
def test_resolving_follows_the_naive_model(sessions: dict[str, str | None], to: str, place: int, cut: int) -> None:
    ids = list(sessions)
    own_id = ids[place % len(ids)] if ids else "nobody"
    asked = [to, *(peer_id[:cut] for peer_id in ids), *(name for name in sessions.values() if name)]
    for text in asked:
        found = resolve(text, split(sessions), own_id)
        assert (found.kind, set(found.ids)) == naive_resolve(text, sessions, own_id), (text, own_id)
        assert len(set(found.ids)) == len(found.ids)


@given(sessions=SESSIONS, renamed=st.dictionaries(IDS, NAMES, max_size=4), gone=st.sets(IDS, max_size=3))
def test_an_index_that_changed_is_like_one_built_anew(
    sessions: dict[str, str | None], renamed: dict[str, str | None], gone: set[str]
) -> None:
    index, now = index_of(sessions), dict(sessions)
    for peer_id, name in renamed.items():
        if peer_id in now:
            index.rename(peer_id, name)
        else:
            index.add(peer_id, name)
        now[peer_id] = name
    for peer_id in gone & set(now):
        index.remove(peer_id)
        del now[peer_id]
    assert vars(index) | {"_by_name": 0, "_names": 0} == vars(index_of(now)) | {"_by_name": 0, "_names": 0}
    assert index._names == index_of(now)._names
    assert {key: set(ids) for key, ids in index._by_name.items()} == {
        key: set(ids) for key, ids in index_of(now)._by_name.items()
    }
    assert len(index) == len(now)
    assert all(peer_id in index for peer_id in now)


TWO = {"pi-00000001": "Reviewer", "pi-00000002": "builder"}


@pytest.mark.parametrize(
    ("to", "kind", "ids"),
    [
        ("pi-00000001", FOUND, ["pi-00000001"]),
        (" pi-00000001\t", FOUND, ["pi-00000001"]),
        ("PI-00000001", FOUND, ["pi-00000001"]),
        ("reviewer", FOUND, ["pi-00000001"]),
        ("\ufeff REVIEWER \u00a0", FOUND, ["pi-00000001"]),
        ("\x1creviewer", UNKNOWN, []),
        ("pi-00000", AMBIGUOUS, ["pi-00000001", "pi-00000002"]),
        ("pi-0000", TOO_SHORT, []),
        ("p", TOO_SHORT, []),
        ("", UNKNOWN, []),
        (" \ufeff", UNKNOWN, []),
        ("review", UNKNOWN, []),
    ],
)
def test_exact_ids_names_and_prefixes(to: str, kind: str, ids: list[str]) -> None:
    found = resolve(to, [index_of(TWO)], "pi-99999999")
    assert (found.kind, sorted(found.ids)) == (kind, ids)


def test_an_exact_id_beats_a_name() -> None:
    sessions = {"reviewer": None, "pi-00000001": "reviewer"}
    assert resolve("reviewer", [index_of(sessions)]).ids == ("reviewer",)


def test_a_name_and_another_sessions_prefix_are_ambiguous() -> None:
    sessions = {"pi-00000001": "abcdefgh", "abcdefgh-1": "other"}
    found = resolve("abcdefgh", [index_of(sessions)])
    assert (found.kind, sorted(found.ids), found.is_by_name) == (AMBIGUOUS, ["abcdefgh-1", "pi-00000001"], False)


def test_a_name_and_a_prefix_of_the_same_session_are_one() -> None:
    assert resolve("abcdefgh", [index_of({"abcdefgh-1": "ABCDEFGH"})]).ids == ["abcdefgh-1"]


def test_two_of_one_name_are_told_as_such() -> None:
    found = resolve("twin", [index_of({"pi-00000001": "twin", "pi-00000002": "Twin "})])
    assert (found.kind, found.is_by_name) == (AMBIGUOUS, True)


def test_the_asking_session_takes_no_part() -> None:
    sessions = {"pi-00000001": "twin", "pi-00000002": "twin"}
    assert resolve("twin", [index_of(sessions)], "pi-00000001").ids == ["pi-00000002"]
    assert resolve("twin", [index_of({"pi-00000001": "twin"})], "pi-00000001").kind == SELF
    assert resolve("pi-00000001", [index_of(sessions)], "pi-00000001").kind == SELF
    assert resolve("pi-00000", [index_of({"pi-00000001": None})], "pi-00000001").kind == SELF
    assert resolve("pi-0", [index_of({"pi-00000001": None})], "pi-00000001").kind == UNKNOWN


def test_ones_own_name_does_not_let_a_short_prefix_select_somebody() -> None:
    sessions = {"me-000001": "abc", "abc-00001": "other"}
    assert resolve("abc", [index_of(sessions)], "me-000001").kind == SELF


def test_ones_own_name_is_no_reason_to_call_others_ambiguous_by_name() -> None:
    sessions = {"me-000001": "abcdefgh", "pi-00000001": "abcdefgh", "abcdefgh-1": None}
    found = resolve("abcdefgh", [index_of(sessions)], "me-000001")
    assert (found.kind, found.is_by_name, sorted(found.ids)) == (AMBIGUOUS, False, ["abcdefgh-1", "pi-00000001"])


def test_what_is_in_no_index_takes_no_part() -> None:
    shown, hidden = index_of({"pi-00000001": "twin"}), index_of({"pi-00000002": "twin"})
    assert resolve("twin", [shown, hidden]).kind == AMBIGUOUS
    assert resolve("twin", [shown]).kind == FOUND
    assert resolve("pi-00000002", [shown]).kind == UNKNOWN


def test_a_resolution_shows_what_it_is() -> None:
    assert repr(resolve("reviewer", [index_of(TWO)])) == "Resolution(found, ['pi-00000001'])"


# -- displaying ----------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(sessions=SESSIONS)
@example({"aΣ aΣaΣaΣ": None, "aσ aσaσb": None})
def test_displayed_targets_are_distinct_and_each_means_its_session(sessions: dict[str, str | None]) -> None:
    shown = display_targets(sessions.items())
    assert set(shown) == set(sessions)
    assert len(set(shown.values())) == len(sessions)
    for peer_id, target in shown.items():
        assert peer_id.startswith(target)
        found = resolve(target, [index_of(sessions)])
        assert (found.kind, list(found.ids)) == (FOUND, [peer_id])


@given(sessions=SESSIONS)
def test_a_displayed_target_is_the_shortest_unless_that_cannot_be_said(sessions: dict[str, str | None]) -> None:
    names = {name_key(name) for name in sessions.values() if name}
    for peer_id, target in display_targets(sessions.items()).items():
        shortest = shortest_unique(peer_id, sessions)
        is_sayable = name_key(shortest) not in names and js_trim(shortest) == shortest and "Σ" not in peer_id
        assert target in {shortest, peer_id}
        assert target == shortest or not is_sayable


def shortest_unique(peer_id: str, sessions: dict[str, str | None]) -> str:
    others = [other.lower() for other in sessions if other != peer_id]
    prefixes = (peer_id[:size] for size in range(MIN_PREFIX_CHARS, len(peer_id)))
    unique = (prefix for prefix in prefixes if not any(other.startswith(prefix.lower()) for other in others))
    return next(unique, peer_id)


@pytest.mark.parametrize(
    ("sessions", "shown"),
    [
        ({"pi-53271aaaa": None}, "pi-53271"),
        ({"pi-53271aaaa": None, "pi-53271aabb": None}, "pi-53271aaa"),
        ({"pi-53271aaaa": None, "other": "PI-53271"}, "pi-53271aaaa"),
        ({"short": None}, "short"),
        ({"abcdefgh": None, "abcdefghij": None}, "abcdefgh"),
        # A blank at its end would be trimmed away, and with it the eighth character.
        ({"one two three": None}, "one two three"),
    ],
)
def test_what_is_displayed(sessions: dict[str, str | None], shown: str) -> None:
    assert next(iter(display_targets(sessions.items()).values())) == shown


def test_a_session_listed_twice_is_displayed_once() -> None:
    assert display_targets([("pi-00000001", "a"), ("pi-00000001", "b")]) == {"pi-00000001": "pi-00000"}


def test_the_displayed_target_of_one_looks_at_all_indexes() -> None:
    one, other = index_of({"pi-00000001": None}), index_of({"pi-00000002": None})
    assert display_target("pi-00000001", [one]) == "pi-00000"
    assert display_target("pi-00000001", [one, other]) == "pi-00000001"


# -- nearest -------------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(one=st.text("abc", max_size=9), other=st.text("abc", max_size=9), furthest=st.integers(0, 10))
def test_edit_distance_is_optimal_string_alignment_up_to_a_bound(one: str, other: str, furthest: int) -> None:
    assert edit_distance(one, other, furthest) == min(naive_distance(one, other), furthest + 1)


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ("", "", 0),
        ("a", "", 1),
        ("ab", "ba", 1),
        ("ca", "abc", 3),
        ("reviewer", "reveiwer", 1),
        ("kitten", "sitting", 3),
    ],
)
def test_known_distances(one: str, other: str, distance: int) -> None:
    assert edit_distance(one, other, 10) == distance


def naive_nearest(to: str, sessions: dict[str, str | None], own_id: str) -> list[str]:
    key = name_key(to)
    furthest = targets.furthest_typo(len(key))
    found = [
        (naive_distance(key, name_key(name)), peer_id)
        for peer_id, name in sessions.items()
        if name and name_key(name) and peer_id != own_id
    ]
    return [peer_id for distance, peer_id in sorted(found) if distance <= furthest and key][:MAX_PROPOSED]


@settings(max_examples=100)
@given(sessions=SESSIONS, to=st.text(LETTERS, max_size=11))
def test_nearest_names_are_those_of_the_naive_search(sessions: dict[str, str | None], to: str) -> None:
    own_id = next(iter(sessions), "")
    assert nearest(to, split(sessions), own_id) == naive_nearest(to, sessions, own_id)


def test_nearest_names_closest_first_and_at_most_three() -> None:
    names = {"id-000001": "reviewer", "id-000002": "reviewers", "id-000003": "reviever", "id-000004": "revieuer"}
    assert nearest("reviewer", [index_of(names)]) == ["id-000001", "id-000002", "id-000003"]
    assert nearest("bldr", [index_of(names)]) == []


def test_names_longer_than_the_limit_are_not_compared() -> None:
    longest, longer = "n" * MAX_COMPARED_CHARS, "n" * (MAX_COMPARED_CHARS + 1)
    index = index_of({"id-000001": longest, "id-000002": longer})
    assert nearest(longest, [index]) == ["id-000001"]
    assert nearest(longer, [index]) == []
    assert nearest("n" * 100_000, [index]) == []


def test_a_typing_mistake_is_found_among_many_look_alikes() -> None:
    index = index_of({f"id-{number:06d}": f"agent-{number:04d}" for number in range(5_000)})
    assert nearest("agnet-1234", [index])[0] == "id-001234"


def test_the_work_of_one_search_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of the longest size that all pass the filters: a search compares a bounded number of characters."""
    compared: list[int] = []

    def count(one: str, other: str, furthest: int) -> int:
        compared.append(len(one) * (2 * furthest + 1))
        return edit_distance(one, other, furthest)

    monkeypatch.setattr(targets, "edit_distance", count)
    letters = "abcdefgh" * 8
    index = index_of({f"id-{n:06d}": letters[n % 60 :] + letters[: n % 60 - 1] + chr(97 + n % 8) for n in range(3_000)})
    nearest(letters[::-1], [index])
    assert 0 < sum(compared) <= targets.MAX_COMPARED_CELLS
