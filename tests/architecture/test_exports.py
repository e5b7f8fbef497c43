"""The library's surface: few names, each there, each documented, and none loaded before it is asked for."""

from __future__ import annotations

import subprocess
import sys

import libintercom

# What a reader can hold in mind; beyond it a name belongs into its own module.
MOST_EXPORTS = 25


def test_the_library_exports_few_names() -> None:
    assert 0 < len(libintercom.__all__) <= MOST_EXPORTS
    assert len(set(libintercom.__all__)) == len(libintercom.__all__)


def test_every_export_is_there_and_public() -> None:
    assert [name for name in libintercom.__all__ if not hasattr(libintercom, name)] == []
    assert [name for name in libintercom.__all__ if name.startswith("_") and name != "__version__"] == []


def test_every_exported_class_and_function_is_documented() -> None:
    exported = {name: getattr(libintercom, name) for name in libintercom.__all__}
    assert [name for name, value in exported.items() if callable(value) and not value.__doc__] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(libintercom, "no_such_name")


def test_nothing_of_the_library_is_loaded_by_its_name_alone() -> None:
    script = "import sys, libintercom; print(*sorted(name for name in sys.modules if name.startswith('libintercom.')))"
    ended = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.split() in ([], ["libintercom.version"])
