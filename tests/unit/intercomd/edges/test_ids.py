"""Fresh identifiers: well formed, and never the same."""

from __future__ import annotations

import re

from intercomd.edges.ids import make_id, make_ids

UUID4 = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def test_ids_are_random_uuids() -> None:
    made = [make_id() for _ in range(1_000)]
    assert all(UUID4.fullmatch(made_id) for made_id in made)
    assert len(set(made)) == len(made)


def test_a_registration_gets_two() -> None:
    one, two = make_ids()
    assert one != two
