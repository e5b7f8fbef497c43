"""Every line of that promise and the tests that show it, on brokers that were really started."""

from __future__ import annotations

_STARTING = "tests/integration/ownership/test_starting.py"
_HERE = "tests/trials/environment/test_environment.py"

LINES: dict[str, tuple[str, ...]] = {
    "code in the working directory, PYTHON*, keys": (
        f"{_STARTING}::test_code_around_a_client_never_reaches_the_broker",
    ),
    "the same around intercomctl": (f"{_HERE}::test_code_around_intercomctl_never_reaches_the_broker",),
    "a preloaded library (LD_PRELOAD)": (f"{_HERE}::test_a_preloaded_library_stays_with_the_client",),
    "umask, signals, limits, descriptors": (f"{_STARTING}::test_what_a_client_inherited_is_not_handed_on",),
    "the working directory and the session": (
        f"{_STARTING}::test_a_candidate_begins_in_the_root_directory_and_in_a_session_of_its_own",
    ),
    "a clean environment, whatever the client's": (
        "tests/unit/libintercom/test_launching.py::test_the_environment_is_a_short_list",
    ),
}
