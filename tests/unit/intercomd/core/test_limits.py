"""The bounds as the wire reference gives them (sections 5.4, 9.4, 9.8, 14.3, 14.5, 14.6), and the bench's."""

from __future__ import annotations

from dataclasses import asdict

from intercomd.core.limits import Limits, raise_rates

_MIB = 1024 * 1024

# Written down once more on purpose: a default that was changed by accident shows here.
REFERENCE = {
    "max_sessions": 10_000,
    "max_unregistered": 64,
    "register_timeout_s": 5.0,
    "max_row_bytes": 8_192,
    "recipient_bytes": 4 * _MIB,
    "recipient_messages": 1_000,
    "outbound_bytes": 256 * _MIB,
    "partial_bytes": 64 * _MIB,
    "frame_timeout_s": 30.0,
    "send_burst": 1_000,
    "sends_per_s": 500.0,
    "input_burst_bytes": 8 * _MIB,
    "input_bytes_per_s": 16.0 * _MIB,
    "pair_messages": 600,
    "pair_window_s": 60.0,
    "stage_keys_per_sender": 100,
    "stage_keys": 1_000,
    "stage_bytes": 16 * _MIB,
    "stage_delay_s": 1.5,
    "stalled_after_s": 20.0,
    "disconnect_after_s": 120.0,
    "dedupe_s": 3_600.0,
    "dedupe_per_sender": 4_096,
    "dedupe_total": 262_144,
    "letters": 10_000,
    "letters_s": 7 * 86_400.0,
    "parked_messages": 100,
    "parked_bytes": _MIB,
    "parked_children": 64,
    "parked_s": 7 * 86_400.0,
    "read_timeout_s": 5.0,
    "reads_per_session": 32,
    "max_list_delay_s": 2.0,
    "idle_exit_s": 5.0,
    "stop_timeout_s": 5.0,
}
# Bounds on memory that no section numbers.
ASKS = {"max_asks_per_recipient", "max_asks_per_asker"}
OURS = ASKS | {
    "parked_children_total",
    "parked_bytes_total",
    "kept_asks",
    "kept_asks_total",
    "kept_bytes",
}


def test_defaults_are_those_of_the_reference() -> None:
    defaults = asdict(Limits())
    assert {name: defaults[name] for name in REFERENCE} == REFERENCE
    assert defaults.keys() == REFERENCE.keys() | OURS


def test_the_bench_raises_rates_and_queues_and_nothing_else() -> None:
    before, raised = asdict(Limits()), asdict(raise_rates(Limits()))
    changed = {name for name in before if before[name] != raised[name]}
    assert changed == {
        "send_burst",
        "sends_per_s",
        "input_burst_bytes",
        "input_bytes_per_s",
        "pair_messages",
        "recipient_bytes",
        "recipient_messages",
        "outbound_bytes",
        *ASKS,
    }
    assert all(raised[name] > 1_000 * before[name] for name in changed)
