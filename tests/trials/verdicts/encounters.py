"""What a candidate may encounter, line by line of the verdict table, all of it met for real.

Owns putting the tables together. Which tests show the lines from within is ``lines``.
"""

from __future__ import annotations

from tests.trials.verdicts import owners, places
from tests.trials.verdicts.encounter import ENCOUNTERS, Encounter, meet

# Loading a table fills the list.
TABLES = (owners, places)

__all__ = ["ENCOUNTERS", "TABLES", "Encounter", "meet"]
