"""`intercomctl metrics`: the broker's counters and gauges, as Prometheus reads them.

Owns the command and the exposition format. What is counted is the broker's (``stats``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from intercomctl import joining, output
from intercomctl.options import JSON, SESSION_ID, Command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PREFIX = "intercom"
# Prometheus text format: what a metric's name is made of.
_NOT_IN_NAME = re.compile("[^a-zA-Z0-9_]")
# The same for a label's value: what must be escaped, and how.
_LABEL_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def run(session_id: str | None, *, as_json: bool) -> int:
    """Print the figures of the running broker."""
    with joining.observe(session_id) as client:
        stats = client.stats()
    if as_json:
        output.emit(stats)
    else:
        output.say("\n".join(render(stats["counters"], stats["gauges"])))
    return 0


def render(counters: Mapping[str, object], gauges: Mapping[str, object]) -> Iterator[str]:
    """Prometheus text: a type line, then the samples, for each figure in the broker's order.

    A figure is a number, or an object of numbers: then its keys are the values of the label ``kind``.
    """
    yield from _family(f"{PREFIX}_up", "gauge", 1)
    for name, value in counters.items():
        yield from _family(f"{PREFIX}_{_NOT_IN_NAME.sub('_', name)}_total", "counter", value)
    for name, value in gauges.items():
        yield from _family(f"{PREFIX}_{_NOT_IN_NAME.sub('_', name)}", "gauge", value)


def _family(name: str, kind: str, value: object) -> Iterator[str]:
    if isinstance(value, dict):
        samples = {f'{{kind="{label.translate(_LABEL_ESCAPES)}"}}': number for label, number in value.items()}
    else:
        samples = {"": value}
    numbers = {labels: number for labels, number in samples.items() if _is_number(number)}
    if numbers:
        yield f"# TYPE {name} {kind}"
    for labels, number in numbers.items():
        yield f"{name}{labels} {number}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


COMMAND = Command(
    "metrics",
    run,
    "Print the broker's counters and gauges as Prometheus text.\n\n"
    "For node_exporter's textfile collector, or any scraper of text. The command looks as an observer: it is no "
    "session and shows in no list.",
    SESSION_ID,
    JSON,
)
