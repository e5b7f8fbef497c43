"""Every line of the verdict table and the tests that show it: real locks, processes, namespaces and directories."""

from __future__ import annotations

_REAL = "tests/integration/ownership"
_UNIT = "tests/unit/libintercom"
_ACQUISITION, _VERDICTS = f"{_REAL}/test_acquisition.py", f"{_REAL}/test_verdicts.py"
_ENDPOINT, _STARTING = f"{_REAL}/test_endpoint.py", f"{_REAL}/test_starting.py"
_RECORDS, _DIRECTORY = f"{_UNIT}/ownership/test_records.py", f"{_UNIT}/ownership/test_directory.py"

LINES: dict[str, tuple[str, ...]] = {
    "a living owner, a killed one": (f"{_VERDICTS}::test_a_living_owner_and_a_killed_one",),
    "a zombie, a stopped owner": (
        f"{_VERDICTS}::test_a_zombie_owns_nothing",
        f"{_VERDICTS}::test_a_stopped_owner_lives",
    ),
    "pid reuse, forced (ns_last_pid)": (f"{_VERDICTS}::test_a_reused_pid_is_never_taken_for_the_owner",),
    "hidepid": (f"{_VERDICTS}::test_a_hidden_proc_and_a_foreign_pid",),
    "another pid namespace": (f"{_VERDICTS}::test_another_pid_namespace",),
    "another machine id, a changed boot id": (
        f"{_VERDICTS}::test_another_boot_and_another_machine_over_a_living_pid",
        f"{_UNIT}/ownership/test_verdict.py::test_another_boot_of_the_same_machine_is_dead",
        f"{_UNIT}/ownership/test_verdict.py::test_another_machine_is_uncertain_even_in_an_equal_boot",
    ),
    "empty, garbled and future records": (
        f"{_ACQUISITION}::test_an_uncertain_record_blocks_and_is_left_alone",
        f"{_ACQUISITION}::test_an_uncertain_claim_blocks_as_a_claim",
        f"{_RECORDS}::test_what_cannot_be_judged_says_why",
        f"{_RECORDS}::test_members_of_a_later_program_are_ignored",
    ),
    "legacy records": (
        f"{_RECORDS}::test_a_bare_pid_is_a_legacy_record",
        f"{_ACQUISITION}::test_a_record_of_a_dead_pid_is_replaced",
    ),
    "every combination of inputs": (
        f"{_UNIT}/ownership/test_verdict.py::test_every_combination_has_a_verdict_and_dead_needs_a_proof",
    ),
    "a foreign directory": (f"{_ACQUISITION}::test_another_users_directory",),
    "a sticky parent of another uid": (f"{_ACQUISITION}::test_a_parent_of_another_user",),
    "a symbolic link": (
        f"{_DIRECTORY}::test_a_symbolic_link_is_refused",
        f"{_ACQUISITION}::test_what_is_no_file_of_ours_is_never_removed",
    ),
    "a path of 101 bytes": (f"{_UNIT}/test_paths.py::test_the_socket_path_is_measured_in_bytes",),
    "EPERM at connect": (
        f"{_ENDPOINT}::test_a_sandbox_that_forbids_connecting_is_not_permitted",
        f"{_STARTING}::test_a_sandbox_is_no_reason_to_start_a_second_broker",
    ),
    "a network filesystem (statfs faked)": (
        f"{_DIRECTORY}::test_a_network_filesystem_is_refused",
        f"{_UNIT}/ownership/test_filesystems.py::test_statfs_numbers",
    ),
    "a foreign O_EXCL claim at every step": (
        f"{_REAL}/test_interference.py::test_a_foreign_claim_at_any_step_wins",
        f"{_REAL}/test_interference.py::test_a_foreign_program_cannot_claim_over_our_claim",
    ),
    "age never makes a claim stale": (f"{_ACQUISITION}::test_age_never_makes_a_claim_stale",),
}
