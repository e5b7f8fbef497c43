"""Real candidates and foreign claims; that faults are seen, and that a line nobody shows is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from intercomd.edges.ownership import publishing
from intercomd.edges.ownership.claim import Claim
from libintercom.ownership.temporaries import make_temporary
from tests.trials.privileges import marks_for
from tests.trials.tables import judge_lines
from tests.trials.verdicts.claims import NOTHING, SITUATIONS, each_moment
from tests.trials.verdicts.encounters import ENCOUNTERS, Encounter, meet
from tests.trials.verdicts.lines import LINES

if TYPE_CHECKING:
    from libintercom.ownership.directory import RuntimeDirectory


def named(name: str) -> Encounter:
    return next(encounter for encounter in ENCOUNTERS if encounter.name == name)


@pytest.mark.parametrize(
    "encounter", [pytest.param(one, id=one.name, marks=marks_for(one.needs)) for one in ENCOUNTERS]
)
def test_a_candidate_reports_what_it_must(encounter: Encounter) -> None:
    met = meet(encounter)
    print(met)
    assert not met.violation


def test_a_wrong_report_and_a_changed_file_are_seen() -> None:
    encounter = named("record: garbled")

    def rob(scene: object) -> object:
        report = encounter.act(scene)  # type: ignore[arg-type]
        scene.seen = " CHANGED"  # type: ignore[attr-defined]
        return report

    def start(scene: object) -> object:
        return scene.run()  # type: ignore[attr-defined]

    for act, told in ((start, "expected uncertain"), (rob, "CHANGED")):
        planted = Encounter(encounter.name, act, encounter.result, encounter.words, ())  # type: ignore[arg-type]
        assert told in meet(planted).violation


@pytest.mark.parametrize(
    "situation", [pytest.param(name, marks=marks_for(needs)) for name, needs in SITUATIONS.items()]
)
def test_a_foreign_claim_at_any_moment_is_respected(situation: str) -> None:
    moments = list(each_moment(situation))
    print(f"{situation}: {len(moments)} moments")
    assert [moment.violation for moment in moments if moment.violation] == []
    # Both outcomes were met: who came before our claim won, who came while it stood did not.
    assert {moment.is_theirs for moment in moments} == {True, False}


def test_a_claim_that_is_not_exclusive_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def publish(directory: RuntimeDirectory, _ours: object) -> Claim:
        name, fd = make_temporary(directory)
        directory.rename(name, "broker.spawn.lock")
        return Claim(directory, fd)

    monkeypatch.setattr(publishing, "publish_claim", publish)
    violations = [moment.violation for moment in each_moment(NOTHING)]
    assert any("another program claimed the start, and we went on" in violation for violation in violations)


def test_a_line_is_shown_only_by_tests_that_passed() -> None:
    table = {"shown": ("a.py::test_x",), "missing": ("a.py::test_y",), "skipped": ("a.py::test_z",)}
    said, violations = judge_lines(table, {"a.py::test_x[1]": "passed", "a.py::test_z": "skipped"})
    assert said[0] == "  shown: 1 passed"
    assert violations == [
        "missing: a.py::test_y did not run",
        "missing: not shown, {}",
        "skipped: not shown, {'skipped': 1}",
    ]


def test_every_line_names_a_test_that_exists() -> None:
    for nodes in LINES.values():
        for node in nodes:
            path, _, name = node.partition("::")
            with open(path, encoding="utf-8") as file:
                assert f"def {name}(" in file.read(), node
