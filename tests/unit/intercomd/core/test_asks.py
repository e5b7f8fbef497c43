"""The wait-for graph: every small graph against a naive path search, and the tables by asker and recipient."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from intercomd.core.asks import Ask, Asks, ask_of
from libintercom.wire.messages import Message
from libintercom.wire.record import parse_record
from tests.support.sayings import message

PEERS = "abcd"
PAIRS = [(one, other) for one in PEERS for other in PEERS if one != other]


def make(asker: str, recipient: str, message_id: str = "q", *, is_waiting: bool = True) -> Ask:
    return Ask(asker, message_id, recipient, None, 120.0, is_timed=False, is_waiting=is_waiting)


def graph(edges: tuple[tuple[str, str], ...], *, waiting: int = -1) -> Asks:
    """Asks along ``edges``; those whose bit in ``waiting`` is not set wait for nobody."""
    asks = Asks()
    for at, (asker, recipient) in enumerate(edges):
        asks.open(make(asker, recipient, f"q{at}", is_waiting=bool(waiting >> at & 1)))
    return asks


def reaches(start: str, end: str, edges: set[tuple[str, str]]) -> bool:
    seen, frontier = {start}, {start}
    while frontier:
        frontier = {other for one, other in edges if one in frontier} - seen
        seen |= frontier
    return end in seen and start != end


def test_every_graph_of_four_peers_and_three_edges() -> None:
    for edges in itertools.combinations(PAIRS, 3):
        for waiting in range(8):
            asks = graph(edges, waiting=waiting)
            live = {edge for at, edge in enumerate(edges) if waiting >> at & 1}
            for asker, recipient in PAIRS:
                chain = asks.cycle(asker, recipient)
                assert bool(chain) == reaches(recipient, asker, live)
                assert not chain or _is_chain(chain, asker, recipient, live)


def _is_chain(chain: list[str], asker: str, recipient: str, live: set[tuple[str, str]]) -> bool:
    """From the recipient, along edges, to whoever waits for the asker; nobody twice."""
    steps = zip(chain, [*chain[1:], asker], strict=True)
    return chain[0] == recipient and len(set(chain)) == len(chain) and all(step in live for step in steps)


def test_a_cycle_of_any_length_is_found() -> None:
    asks = graph(tuple((str(at), str(at + 1)) for at in range(2_000)))
    assert asks.cycle("2000", "0") == [str(at) for at in range(2_000)]
    assert asks.cycle("0", "2000") == []


def test_several_asks_between_two_peers_are_one_way_round() -> None:
    asks = graph((("b", "a"), ("b", "a")))
    assert asks.cycle("a", "b") == ["b"]
    asks.close(asks.of_asker("b")[0])
    assert asks.cycle("a", "b") == ["b"]
    asks.close(asks.of_asker("b")[0])
    assert asks.cycle("a", "b") == []


def test_the_ask_that_a_message_answers_does_not_count() -> None:
    asks = graph((("a", "b"),))
    answered = asks.of_asker("a")[0]
    assert asks.cycle("b", "a") == ["a"]
    assert asks.cycle("b", "a", answered) == []
    asks.open(make("a", "b", "another"))
    assert asks.cycle("b", "a", answered) == ["a"]


STEPS = [("open", edge, f"q{at}") for at, edge in enumerate([("a", "b"), ("a", "b"), ("b", "a"), ("a", "c")])]


def test_every_order_of_opening_and_closing() -> None:
    """Both tables always hold the same asks, and nothing of what was closed."""
    for order in itertools.permutations(STEPS):
        asks, opened = Asks(), []
        for _step, (asker, recipient), message_id in order:
            opened.append(make(asker, recipient, message_id))
            asks.open(opened[-1])
            _check(asks, opened)
        for ask in sorted(opened, key=lambda ask: ask.message_id):
            asks.close(ask)
            opened.remove(ask)
            _check(asks, opened)
        assert vars(asks) == vars(Asks())


def _check(asks: Asks, opened: list[Ask]) -> None:
    assert {ask.key for ask in asks} == {ask.key for ask in opened}
    assert len(asks) == asks.waiting == len(opened)
    for peer in PEERS:
        asked = [ask for ask in opened if ask.asker_id == peer]
        owed = [ask for ask in opened if ask.recipient_id == peer]
        assert asks.of_asker(peer) == asked
        assert set(map(id, asks.of_recipient(peer))) == set(map(id, owed))
        assert (asks.count_of_asker(peer), asks.count_of_recipient(peer)) == (len(asked), len(owed))
        assert all(asks.find(peer, ask.message_id) is ask for ask in asked)
    assert asks.find("a", "unknown") is None


@pytest.mark.parametrize(
    ("members", "accepts_asks", "is_waiting", "timeout_s"),
    [
        ({}, None, True, 120.0),
        ({}, True, True, 120.0),
        ({}, False, False, 120.0),
        ({"delivery": "steer"}, False, True, 120.0),
        ({"delivery": "queue"}, False, True, 120.0),
        ({"timeoutMs": 0}, True, False, 0.0),
        ({"timeoutMs": 0, "delivery": "steer"}, True, False, 0.0),
        ({"timeoutMs": 250}, None, True, 0.25),
        ({"timeoutMs": 3_600_000}, None, True, 3_600.0),
    ],
)
def test_when_an_ask_waits(
    members: dict[str, Any], accepts_asks: bool | None, is_waiting: bool, timeout_s: float
) -> None:
    asked = parse_record(Message, message("q1", expectsReply=True, **members))
    ask = ask_of("a", "b", asked, accepts_asks=accepts_asks, has_ext=False)
    assert (ask.is_waiting, ask.timeout_s) == (is_waiting, timeout_s)
    assert (ask.asker_id, ask.recipient_id, ask.key, ask.is_delivered) == ("a", "b", ("a", "q1"), False)


@pytest.mark.parametrize(
    ("members", "has_ext", "is_timed"),
    [({}, False, False), ({}, True, True), ({"timeoutMs": 5}, False, True), ({"timeoutMs": 5}, True, True)],
)
def test_whose_timer_also_ends_the_question(members: dict[str, Any], has_ext: bool, is_timed: bool) -> None:
    """Only a client without extensions never said how long its question stands (wire.md 9.6)."""
    asked = parse_record(Message, message("q1", expectsReply=True, **members))
    assert ask_of("a", "b", asked, accepts_asks=None, has_ext=has_ext).is_timed is is_timed


def test_the_thread_of_an_ask_is_trimmed() -> None:
    asked = parse_record(
        Message, message("q1", expectsReply=True, delivery="queue", queueMode="replace", threadId=" t\ufeff")
    )
    assert ask_of("a", "b", asked, accepts_asks=None, has_ext=False).thread_id == "t"
