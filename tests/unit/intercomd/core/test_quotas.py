"""Budgets: buckets and windows against naive models, the exact edge of each rule, and when it opens again."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intercomd.core.limits import Limits
from intercomd.core.quotas import Bucket, Excess, Quotas, Window
from intercomd.core.roster import Connection
from tests.support.conversation import Conversation
from tests.support.sayings import ask, reply, send

NOW = 1_000_000.25
_MIB = 1024 * 1024
# Steps that add up exactly in binary, so that a model may compare for equality.
STEPS_S = (0.0, 0.25, 1.0, 64.0)


# -- buckets -------------------------------------------------------------------------------------------------


def test_every_short_history_of_a_bucket() -> None:
    """Take and wait in any order: the level is what a recount from the beginning gives."""
    for history in itertools.product(itertools.product((0, 1, 5), STEPS_S), repeat=4):
        bucket, level, now = Bucket(4, 2.0, NOW), 4.0, NOW
        for amount, step_s in history:
            bucket.take(amount, now)
            level -= amount
            now += step_s
            level = min(4.0, level + step_s * 2.0)
            assert bucket.level(now) == level
            assert bucket.wait_s(now, 1) == max(0.0, (1 - level) / 2.0)


def test_a_bucket_starts_full_and_never_holds_more() -> None:
    bucket = Bucket(3, 1.0, NOW)
    assert bucket.level(NOW) == 3
    assert bucket.level(NOW + 1_000) == 3


def test_a_bucket_is_not_refilled_by_a_clock_that_stands_still() -> None:
    bucket = Bucket(3, 1.0, NOW)
    bucket.take(3, NOW)
    assert bucket.level(NOW - 5) == 0
    assert bucket.level(NOW) == 0


def test_a_bucket_goes_below_zero_by_the_last_thing_taken() -> None:
    bucket = Bucket(3, 2.0, NOW)
    bucket.take(10, NOW)
    assert bucket.level(NOW) == -7
    assert bucket.wait_s(NOW, 0) == 3.5


# -- windows -------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 20), max_size=30), st.floats(0.5, 6))
def test_a_window_never_counts_too_few_nor_what_left_a_second_ago(gaps_s: list[float], window_s: float) -> None:
    window, added, now = Window(), [], NOW
    for gap_s in gaps_s:
        now += gap_s
        window.slide(now, window_s)
        window.add(now)
        added.append(now)
        exact = sum(now - window_s < at for at in added)
        generous = sum(now - window_s - 1 <= at for at in added)
        assert exact <= window.total <= generous


def test_a_bucket_gives_all_that_is_wanted_or_nothing() -> None:
    bucket = Bucket(10, 1.0, NOW)
    assert bucket.take_if_there(10, NOW)
    assert not bucket.take_if_there(1, NOW)
    assert bucket.level(NOW) == 0
    assert not bucket.take_if_there(3, NOW + 2)
    assert bucket.take_if_there(2, NOW + 2)


@pytest.mark.parametrize(("count", "size_bytes", "is_charged"), [(5, 50, True), (6, 50, False), (5, 51, False)])
def test_several_sends_are_charged_when_none_would_be_refused(count: int, size_bytes: int, is_charged: bool) -> None:
    quotas = Quotas(Limits(send_burst=5, input_burst_bytes=50))
    assert quotas.charge_sends(1, NOW, count, size_bytes) is is_charged
    allowance = quotas.allowance(1, NOW)
    left = (0, 0) if is_charged else (5, 50)
    assert (allowance.sends.level(NOW), allowance.input.level(NOW)) == left


def test_the_room_of_a_pair_is_the_least_of_its_bounds() -> None:
    quotas = Quotas(Limits(recipient_messages=9, recipient_bytes=900, pair_messages=7, outbound_bytes=1_000))
    recipient = Connection(1)
    assert quotas.room("a", "b", recipient) == (7, 900)
    quotas.charge_pair("a", "b", NOW, 2)
    quotas.hold(recipient, 300, 5)
    assert quotas.room("a", "b", recipient) == (4, 600)
    quotas.hold(Connection(2), 500)
    assert quotas.room("a", "b", recipient) == (4, 200)


def test_a_window_opens_when_its_oldest_second_is_over() -> None:
    window = Window()
    window.add(100.2)
    window.add(100.9)
    window.add(101.5)
    assert window.opens_at(60.0) == 161.0
    window.slide(160.999, 60.0)
    assert window.total == 3
    window.slide(161.0, 60.0)
    assert window.total == 1


# -- the sender's rates --------------------------------------------------------------------------------------


def sent_until_refused(quotas: Quotas, now: float, conn: int = 1) -> tuple[int, Excess]:
    for count in itertools.count():
        excess = quotas.charge_send(conn, now, 100)
        if excess is not None:
            return count, excess
    raise AssertionError


def test_exactly_the_burst_of_sends_passes() -> None:
    quotas = Quotas(Limits(send_burst=5, sends_per_s=2.0))
    assert sent_until_refused(quotas, NOW) == (5, Excess("sends", 5, 5, 501))


def test_sends_of_one_connection_do_not_cost_another() -> None:
    quotas = Quotas(Limits(send_burst=5))
    sent_until_refused(quotas, NOW, conn=1)
    assert sent_until_refused(quotas, NOW, conn=2)[0] == 5


def test_a_connection_that_is_gone_is_forgotten() -> None:
    quotas = Quotas(Limits(send_burst=5))
    sent_until_refused(quotas, NOW)
    quotas.forget(1)
    quotas.forget(1)
    assert sent_until_refused(quotas, NOW)[0] == 5


@given(
    spent=st.integers(1, 40),
    pause_s=st.floats(0, 0.3),
    uptime_s=st.floats(0, 1e8),
    rate_per_s=st.sampled_from([500.0, 3.0, 0.7]),
)
def test_a_refused_send_passes_when_it_is_told_to_come_back(
    spent: int, pause_s: float, uptime_s: float, rate_per_s: float
) -> None:
    quotas = Quotas(Limits(send_burst=spent, sends_per_s=rate_per_s))
    _count, _excess = sent_until_refused(quotas, uptime_s)
    excess = quotas.charge_send(1, uptime_s + pause_s, 100)
    if excess is not None:
        assert excess.retry_after_ms > 0
        assert quotas.charge_send(1, uptime_s + pause_s + excess.retry_after_ms / 1000, 100) is None


@given(
    sizes=st.lists(st.integers(1, 2_000), min_size=3, max_size=20),
    uptime_s=st.floats(0, 1e8),
    rate_per_s=st.sampled_from([1_000.0, 16.0 * _MIB, 3.7]),
)
def test_a_send_refused_for_bytes_passes_when_it_is_told_to_come_back(
    sizes: list[int], uptime_s: float, rate_per_s: float
) -> None:
    quotas, now = Quotas(Limits(input_burst_bytes=2_000, input_bytes_per_s=rate_per_s)), uptime_s
    for size_bytes in sizes:
        quotas.allowance(1, now).input.take(size_bytes, now)
        excess = quotas.charge_send(1, now, size_bytes)
        if excess is None:
            continue
        assert (excess.rule, excess.limit) == ("bytes", 2_000)
        assert excess.count > excess.limit
        assert excess.retry_after_ms > 0
        now += excess.retry_after_ms / 1000
        quotas.allowance(1, now).input.take(size_bytes, now)
        assert quotas.charge_send(1, now, size_bytes) is None


def test_the_byte_budget_counts_every_frame() -> None:
    talk = Conversation(input_burst_bytes=2_000, input_bytes_per_s=1_000.0)
    talk.joins("a", "alice").joins("b", "bob")
    talk.says("a", *[{"type": "health", "requestId": "x" * 300}] * 8).receives("a")
    talk.says("a", send("bob", "m1"))
    (refused,) = talk.receives("a")
    assert (refused["code"], refused["rule"], refused["limit"]) == ("rate_limited", "bytes", 2_000)
    assert refused["retryable"] is True
    talk.after(refused["retryAfterMs"] / 1000).receives("a")
    talk.says("a", send("bob", "m1")).expects("a", {"type": "delivered", "messageId": "m1"})


def test_big_messages_pass_one_by_one_when_they_keep_to_what_they_were_told() -> None:
    talk = Conversation(input_burst_bytes=3_000, input_bytes_per_s=1_000.0)
    talk.joins("a", "alice").joins("b", "bob")
    for number in range(6):
        talk.says("a", send("bob", f"m{number}", "x" * 2_000))
        (answer,) = talk.receives("a")
        if answer["type"] == "delivery_failed":
            talk.after(answer["retryAfterMs"] / 1000).says("a", send("bob", f"m{number}", "x" * 2_000))
            (answer,) = talk.receives("a")
        assert answer == {"type": "delivered", "messageId": f"m{number}"}


# -- the pair's budget ---------------------------------------------------------------------------------------


def test_exactly_the_budget_of_a_pair_passes_and_it_opens_when_told() -> None:
    quotas = Quotas(Limits(pair_messages=3, pair_window_s=60.0))
    for at in (100.2, 100.4, 130.0):
        assert quotas.pair_excess("a", "b", at) is None
        quotas.charge_pair("a", "b", at)
    excess = quotas.pair_excess("a", "b", 150.5)
    assert excess == Excess("pair", 3, 3, 10_501)
    assert quotas.pair_excess("b", "a", 150.5) is None
    assert quotas.pair_excess("a", "c", 150.5) is None
    assert quotas.pair_excess("a", "b", 150.5 + 10.501) is None


@given(st.lists(st.floats(0, 30), min_size=1, max_size=40), st.integers(1, 4))
def test_a_pair_passes_when_it_is_told_to_come_back(gaps_s: list[float], most: int) -> None:
    quotas, now = Quotas(Limits(pair_messages=most, pair_window_s=60.0)), NOW
    for gap_s in gaps_s:
        now += gap_s
        excess = quotas.pair_excess("a", "b", now)
        if excess is not None:
            assert excess.count == excess.limit == most
            assert 0 < excess.retry_after_ms <= 61_001
            now += excess.retry_after_ms / 1000
            assert quotas.pair_excess("a", "b", now) is None
        quotas.charge_pair("a", "b", now)


def test_the_memory_of_pairs_follows_the_traffic_of_one_window() -> None:
    quotas = Quotas(Limits(pair_window_s=60.0))
    for number in range(500):
        quotas.charge_pair("a", f"b{number}", 100.0)
    assert len(quotas._pairs) == 500
    for number in range(250):
        quotas.charge_pair("c", f"d{number}", 300.0)
    assert len(quotas._pairs) == 250


def test_a_pair_in_use_is_not_forgotten_among_idle_ones() -> None:
    quotas = Quotas(Limits(pair_messages=2, pair_window_s=60.0))
    quotas.charge_pair("a", "b", 100.0)
    for number in range(10):
        quotas.charge_pair("x", f"y{number}", 100.0)
    quotas.charge_pair("a", "b", 150.0)
    for number in range(20):
        quotas.charge_pair("v", f"w{number}", 170.0)
    assert quotas.pair_excess("a", "b", 170.0) is None
    quotas.charge_pair("a", "b", 170.0)
    assert quotas.pair_excess("a", "b", 170.0) is not None


def storm(**limits: float) -> Conversation:
    """A pair of which b has used up its budget to a, while a asked b a question that is still open."""
    talk = Conversation(pair_messages=2, **limits).joins("a", "alice").joins("b", "bob")
    talk.says("a", ask("bob", "q1"))
    talk.says("b", send("alice", "m1"), send("alice", "m2")).says("b", send("alice", "m3"))
    talk.receives("a")
    refused = talk.receives("b")[-1]
    assert (refused["messageId"], refused["code"], refused["rule"]) == ("m3", "rate_limited", "pair")
    assert (refused["count"], refused["limit"]) == (2, 2)
    assert refused["retryAfterMs"] > 0
    return talk


def test_only_the_first_reply_to_a_live_ask_is_exempt() -> None:
    talk = storm()
    talk.says("b", reply("alice", "r1", "q1")).expects("b", {"type": "delivered", "messageId": "r1"})
    for again in ("r2", "r3"):
        talk.says("b", reply("alice", again, "q1"))
        talk.expects("b", {"type": "delivery_failed", "messageId": again, "code": "rate_limited", "...": True})


@pytest.mark.parametrize("reply_to", ["unknown", "q0", "m1"])
def test_a_reply_to_nothing_open_is_not_exempt(reply_to: str) -> None:
    talk = storm()
    talk.says("b", reply("alice", "r1", reply_to))
    talk.expects("b", {"type": "delivery_failed", "messageId": "r1", "code": "rate_limited", "...": True})


def test_a_reply_to_somebody_elses_ask_is_not_exempt() -> None:
    talk = storm().joins("c", "carol", ext=1)
    talk.says("c", ask("alice", "q9"))
    talk.says("b", reply("alice", "r1", "q9"))
    talk.expects("b", {"type": "delivery_failed", "messageId": "r1", "code": "rate_limited", "...": True})


def test_a_reply_to_an_ask_whose_asker_left_is_not_exempt() -> None:
    talk = storm().says("a", {"type": "unregister"})
    talk.joins("a", "alice")
    talk.receives("b")
    talk.says("b", reply("alice", "r1", "q1"))
    talk.expects("b", {"type": "delivery_failed", "messageId": "r1", "code": "rate_limited", "...": True})


def test_a_refused_message_does_not_count_for_its_pair() -> None:
    talk = storm()
    for number in range(5):
        talk.says("b", send("alice", f"n{number}"))
    assert {frame["count"] for frame in talk.receives("b")} == {2}


# -- what may wait for a recipient ---------------------------------------------------------------------------


def held(quotas: Quotas, *sizes: int) -> Connection:
    recipient = Connection(1)
    for size_bytes in sizes:
        quotas.hold(recipient, size_bytes)
    return recipient


def test_exactly_so_many_messages_wait_for_a_recipient() -> None:
    quotas = Quotas(Limits(recipient_messages=3))
    assert quotas.recipient_excess(held(quotas, 1, 1), 1) is None
    assert quotas.recipient_excess(held(quotas, 1, 1, 1), 1) == Excess("recipient_messages", 3, 3, 0)


def test_exactly_so_many_bytes_wait_for_a_recipient() -> None:
    quotas = Quotas(Limits(recipient_bytes=100))
    recipient = held(quotas, 60)
    assert quotas.recipient_excess(recipient, 40) is None
    assert quotas.recipient_excess(recipient, 41) == Excess("recipient_bytes", 60, 100, 0)


def test_a_recipient_with_nothing_waiting_takes_one_message_of_any_size() -> None:
    quotas = Quotas(Limits(recipient_bytes=100))
    assert quotas.recipient_excess(Connection(1), 5_000) is None


def test_all_recipients_together_have_a_bound() -> None:
    quotas = Quotas(Limits(outbound_bytes=100))
    held(quotas, 60)
    other = Connection(2)
    assert quotas.recipient_excess(other, 40) is None
    assert quotas.recipient_excess(other, 41) == Excess("outbound_bytes", 60, 100, 0)


def test_what_is_released_makes_room() -> None:
    quotas = Quotas(Limits(recipient_messages=1))
    recipient = held(quotas, 10)
    quotas.release(recipient, 10)
    assert (recipient.held_messages, recipient.held_bytes, quotas.held_bytes) == (0, 0, 0)
    assert quotas.recipient_excess(recipient, 10) is None


def test_a_slow_recipient_costs_only_itself() -> None:
    talk = Conversation(recipient_messages=2).joins("a", "alice").joins("b", "bob").joins("c", "carol")
    talk.holds("b")
    talk.says("a", send("bob", "m0"), send("bob", "m1"))
    talk.expects("a", *[{"type": "delivery_queued", "messageId": sent, "...": True} for sent in ("m0", "m1")])
    talk.says("a", send("bob", "m2")).expects(
        "a", {"type": "delivery_failed", "code": "recipient_full", "rule": "recipient_messages", "...": True}
    )
    talk.says("a", send("carol", "n1")).expects("a", {"type": "delivered", "messageId": "n1"})
    talk.reads("b").says("a", send("bob", "m2")).expects("a", {"type": "delivered", "messageId": "m2"})
